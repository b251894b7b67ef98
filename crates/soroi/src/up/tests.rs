//! What `soroi up` takes and writes.

use super::pace;

#[test]
fn paces_are_factors() {
    for (text, expected) in [("60x", Some(60)), ("1", Some(1)), ("0x", None), ("-1x", None), ("fast", None)] {
        assert_eq!(pace(text).ok(), expected, "{text}");
    }
}
