//! Which node is best, for one pod at a time.

use super::*;

fn room(cpu: Amount, devices: &[u32]) -> Room {
    Room { plain: SmallVec::from_iter([cpu]), devices: devices.iter().copied().collect(), kind: 1 }
}

fn needs(cpu: Amount, devices: u32, milli: u32) -> Needs {
    Needs { plain: SmallVec::from_iter([cpu]), devices, milli, kinds: 0 }
}

fn mix(kinds: &[(Needs, u64)]) -> Mix {
    Mix::new(kinds.iter().cloned())
}

#[test]
fn what_a_pod_cannot_use_is_a_fragment() {
    let room = room(8, &[1_000, 600, 0]);
    assert_eq!(room.unusable(&needs(4, 1, 500)), 0);
    assert_eq!(room.unusable(&needs(4, 1, 1_000)), 600);
    assert_eq!(room.unusable(&needs(4, 2, 1_000)), 1_600, "it does not fit at all");
    assert_eq!(room.unusable(&needs(9, 1, 100)), 1_600, "too little else is left");
    let other = Needs { kinds: 2, ..needs(4, 1, 500) };
    assert_eq!(room.unusable(&other), 1_600, "devices of another kind");
}

#[test]
fn devices_beyond_what_all_else_suffices_for_are_fragments_too() {
    // Each device comes with 4 of the other: 8 suffice for 2 devices of 3.
    let stream = mix(&[(needs(8, 2, 1_000), 1), (needs(2, 1, 500), 3)]);
    assert_eq!(room(8, &[1_000, 1_000, 1_000]).beyond(&stream), 1_000);
    assert_eq!(room(12, &[1_000, 1_000, 1_000]).beyond(&stream), 0);
    assert_eq!(room(0, &[1_000]).beyond(&stream), 1_000);
    assert_eq!(room(8, &[1_000]).beyond(&Mix::default()), 0);
}

#[test]
fn a_part_of_a_device_lies_on_one_device() {
    let room = room(8, &[400, 400, 400]);
    assert!(!room.takes(&needs(1, 1, 500)));
    assert!(!room.takes(&needs(1, 1, 1_000)));
    assert!(room.takes(&needs(1, 1, 400)));
}

#[test]
fn the_best_place_depends_on_what_comes() {
    // A node that is cut already, and a whole one.
    let rooms = vec![room(64, &[1_000, 1_000]), room(64, &[500, 1_000])];
    let half = needs(1, 1, 500);
    let place = |packing, mix| Floor::new(packing, rooms.clone(), mix).place(&half);
    assert_eq!(place(Packing::Fragmentation, mix(&[(needs(1, 2, 1_000), 1)])), Some(1));
    assert_eq!(place(Packing::BestFit, Mix::default()), Some(1));
    assert_eq!(place(Packing::Spread, Mix::default()), Some(0));
    // A node without devices is best for pods that need none.
    let rooms = vec![room(8, &[1_000]), room(8, &[])];
    let mut floor = Floor::new(Packing::Fragmentation, rooms, mix(&[(needs(4, 1, 1_000), 1)]));
    assert_eq!(floor.place(&needs(8, 0, 0)), Some(1));
    assert_eq!(floor.place(&needs(5, 0, 0)), Some(0));
    assert_eq!(floor.place(&needs(4, 1, 1_000)), None);
}

#[test]
fn nodes_are_judged_anew_when_they_change() {
    let mut floor = Floor::new(Packing::BestFit, vec![room(4, &[1_000]), room(4, &[1_000])], Mix::default());
    let third = needs(1, 1, 300);
    let places: Vec<Option<usize>> = (0..7).map(|_| floor.place(&third)).collect();
    assert_eq!(places, [Some(0), Some(0), Some(0), Some(1), Some(1), Some(1), None]);
}
