//! Tables from Kubernetes' own rules, and properties that hold for any text and amount.

use proptest::prelude::*;

use crate::{Format, Quantity, base_units, base_units_exact, display};

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn prints_the_canonical_form() {
    for (text, canonical) in [
        ("0", "0"),
        ("0.0Mi", "0"),
        ("-0", "0"),
        ("0.5", "500m"),
        (".5", "500m"),
        ("5.", "5"),
        ("05", "5"),
        ("+5", "5"),
        ("1.500", "1500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000Mi", "1000Mi"),
        ("1023Ki", "1023Ki"),
        ("0.5Ki", "512"),
        ("1Ki", "1Ki"),
        ("0.0001Ki", "102400u"),
        ("1.1Ki", "1126400m"),
        ("2.5Gi", "2560Mi"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("1e+3", "1e3"),
        ("1500e-3", "1500e-3"),
        ("15e2", "1500"),
        ("1e0", "1"),
        ("12e6", "12e6"),
        ("12M", "12M"),
        ("1E", "1E"),
        ("100E", "100E"),
        ("1000E", "1000E"),
        ("1000k", "1M"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("0.00000000000000000001", "1n"),
        ("1.0000000000000000001", "1000000001n"),
        ("-0.1n", "-1n"),
        ("1e-100", "1e-9"),
        ("1e-99999999999999999999", "1e-9"),
        ("0e99999999999999999999", "0"),
        ("7Ei", "7Ei"),
        ("8Ei", "9223372036854775807"),
        ("9Ei", "9223372036854775807"),
        ("-9Ei", "-9223372036854775807"),
        ("1e999", "10e27"),
        ("-500m", "-500m"),
        ("-1024Mi", "-1Gi"),
    ] {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn counts_in_base_units_rounding_up() {
    for (resource, text, amount) in [
        ("cpu", "1", 1000),
        ("cpu", "0.5", 500),
        ("cpu", "100m", 100),
        ("cpu", "100u", 1),
        ("cpu", "1n", 1),
        ("cpu", "0", 0),
        ("cpu", "-1.5", -1500),
        ("memory", "128Mi", 128 << 20),
        ("memory", "1", 1),
        ("memory", "100m", 1),
        ("memory", "1e3", 1000),
        ("memory", "-100m", -1),
        ("memory", "9Ei", i64::MAX),
        ("cpu", "9Ei", i64::MAX),
        ("example.com/gpu", "4", 4),
        ("example.com/gpu", "3.5", 4),
        ("example.com/gpu", "1e40", i64::MAX),
        ("example.com/gpu", "-1e40", i64::MIN),
        ("pods", "110", 110),
    ] {
        assert_eq!(base_units(resource, &quantity(text)), amount, "{resource} {text}");
    }
    assert_eq!(base_units_exact("example.com/gpu", &quantity("3.5")), None);
    assert_eq!(base_units_exact("example.com/gpu", &quantity("4")), Some(4));
    assert_eq!(base_units_exact("cpu", &quantity("1u")), None);
    assert_eq!(base_units_exact("memory", &quantity("1e30")), None);
}

#[test]
fn shows_amounts_as_kueue_does() {
    for (resource, amount, text) in [
        ("cpu", 500, "500m"),
        ("cpu", 2000, "2"),
        ("memory", 512 << 20, "512Mi"),
        ("memory", 1000, "1k"),
        ("memory", 1025, "1025"),
        ("ephemeral-storage", 1 << 40, "1Ti"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("example.com/gpu", 4, "4"),
        ("example.com/gpu", 4000, "4k"),
        ("pods", 0, "0"),
    ] {
        assert_eq!(display(resource, amount), text, "{resource} {amount}");
    }
}

#[test]
fn says_where_a_text_stops_being_a_quantity() {
    for (text, message) in [
        ("", r#"quantity "": expected a number at position 0"#),
        ("-", r#"quantity "-": expected a number at position 1"#),
        (".", r#"quantity ".": expected a number at position 0"#),
        ("Ki", r#"quantity "Ki": expected a number at position 0"#),
        ("+-1", r#"quantity "+-1": expected a number at position 1"#),
        ("1e", r#"quantity "1e": expected a whole number as exponent at position 2"#),
        ("1e1.5", r#"quantity "1e1.5": expected a whole number as exponent at position 2"#),
        ("1e3Mi", r#"quantity "1e3Mi": expected a whole number as exponent at position 2"#),
    ] {
        assert_eq!(text.parse::<Quantity>().unwrap_err().to_string(), message);
    }
    for (text, position) in
        [("12Q", 2), ("1 Gi", 1), (" 1", 0), ("1K", 1), ("1ki", 1), ("1.2.3", 3), ("1Mib", 1), ("1µ", 1)]
    {
        assert_eq!(text.parse::<Quantity>().unwrap_err().position, position, "{text}");
    }
}

#[test]
fn sums_keep_the_format_of_the_left_unless_it_is_zero() {
    let sum = |a: &str, b: &str| quantity(a).checked_add(&quantity(b)).unwrap().to_string();
    assert_eq!(sum("1Gi", "1G"), "2073741824");
    assert_eq!(sum("0", "1Gi"), "1Gi");
    assert_eq!(sum("1Gi", "1Gi"), "2Gi");
    assert_eq!(quantity("1Gi").checked_sub(&quantity("1024Mi")).unwrap().to_string(), "0");
    assert_eq!(quantity("100m").checked_mul(15).unwrap().to_string(), "1500m");
    assert_eq!(quantity("1e28").checked_add(&quantity("1n")), None);
    assert_eq!(quantity("-1e28").checked_sub(&quantity("1n")), None);
    assert_eq!(quantity("1e28").checked_mul(i64::MAX), None);
    assert_eq!(quantity("1e28").saturating_mul(-2), quantity("-1e28"));
    assert_eq!(quantity("1e28").saturating_add(&quantity("1e28")), quantity("1e28"));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_without_a_panic(text in "\\PC{0,12}|[-+]?[0-9.]{0,60}[numkMGTPEie]{0,2}[-+0-9]{0,22}") {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let printed = quantity.to_string();
            let again: Quantity = printed.parse().unwrap();
            prop_assert_eq!(again, quantity);
            prop_assert_eq!(again.to_string(), printed);
        }
    }

    #[test]
    fn every_amount_prints_and_reads_back(amount: i64, milli: bool, binary: bool) {
        let resource = if milli { "cpu" } else if binary { "memory" } else { "example.com/gpu" };
        let read: Quantity = display(resource, amount).parse().unwrap();
        // Kubernetes caps what has a binary suffix one above the least i64.
        let expected = if binary && !milli { amount.max(-i64::MAX) } else { amount };
        prop_assert_eq!(base_units_exact(resource, &read), Some(expected));
    }

    #[test]
    fn rounding_never_makes_a_request_smaller(whole in 0_u32.., nanos in 0_u32..1_000_000_000) {
        let read: Quantity = format!("{whole}.{nanos:09}").parse().unwrap();
        prop_assert_eq!(read.units(), i64::from(whole) + i64::from(nanos > 0));
        prop_assert_eq!(read.milli(), i64::from(whole) * 1000 + i64::from(nanos.div_ceil(1_000_000)));
        prop_assert_eq!(read.is_whole(), nanos == 0);
    }

    #[test]
    fn order_and_sums_agree(a: i32, b: i32) {
        let (x, y) = (Quantity::from_milli(i64::from(a), Format::DecimalSi), Quantity::from_milli(i64::from(b), Format::BinarySi));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.saturating_add(&y).milli(), i64::from(a) + i64::from(b));
        prop_assert_eq!(x.checked_sub(&y).unwrap().milli(), i64::from(a) - i64::from(b));
    }
}

#[test]
fn products_are_exact_round_up_once_and_stop_at_the_bound() {
    for (one, other, product) in [
        ("1500m", "10", "15"),
        ("3", "100m", "300m"),
        ("1500m", "-3", "-4500m"),
        ("1n", "100m", "1n"),
        ("-1n", "100m", "-1n"),
        ("10Gi", "2", "20Gi"),
        ("9E", "9E", "10e27"),
        ("9E", "-9E", "-10e27"),
        ("9e27", "1500m", "10e27"),
        ("9e27", "500m", "4500000000e18"),
        ("0", "9e27", "0"),
    ] {
        let both = [
            quantity(one).saturating_product(&quantity(other)),
            quantity(other).saturating_product(&quantity(one)),
        ];
        assert_eq!(both, [quantity(product); 2], "{one} * {other}");
    }
}
