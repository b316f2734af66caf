use super::*;

fn address(n: u32) -> IpAddr {
    std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into()
}

fn peer(n: u32) -> Caller {
    Caller::Peer(NodeName::new(&format!("site-{n}")).unwrap())
}

fn admission() -> Admission {
    Admission::new(Limits::CONTRACT)
}

/// One that arrives at the beginning, or so many milliseconds later.
fn arrive(admission: &Admission, address: IpAddr, is_own: bool) -> Result<Place, Refused> {
    arrive_at(admission, address, is_own, 0)
}

fn arrive_at(
    admission: &Admission,
    address: IpAddr,
    is_own: bool,
    ms: u64,
) -> Result<Place, Refused> {
    static BEGAN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let now = *BEGAN + Duration::from_millis(ms);
    admission
        .arrive(address, is_own, now)
        .map(|(place, _)| place)
}

/// As many handshakes of strangers as there may be, eight a source.
fn strangers(admission: &Admission) -> Vec<Place> {
    let places: Vec<Place> = (0..248)
        .map(|n| arrive(admission, address(n / 8), false).unwrap())
        .collect();
    assert_eq!(
        arrive(admission, address(1000), false).unwrap_err(),
        Refused::PeersFull
    );
    places
}

#[test]
fn strangers_and_peers_hold_248_and_eight_stay_for_local_callers() {
    let admission = admission();
    let _strangers = strangers(&admission);
    let mut local: Vec<Place> = (0..8)
        .map(|n| arrive(&admission, address(n), true).unwrap())
        .collect();
    for place in &mut local {
        place.identify(&Caller::Local).unwrap();
    }
    assert_eq!(
        arrive(&admission, address(1), true).unwrap_err(),
        Refused::Full
    );
    drop(local.pop());
    assert!(arrive(&admission, address(1), true).is_ok());
}

#[test]
fn a_caller_from_an_own_address_takes_the_place_of_the_oldest_that_stalls() {
    let admission = admission();
    let mut strangers = strangers(&admission);
    let mut local: Vec<Place> = (0..8)
        .map(|n| arrive(&admission, address(n), true).unwrap())
        .collect();
    for ms in [0, 499] {
        let refused = arrive_at(&admission, address(1), true, ms).unwrap_err();
        assert_eq!(refused, Refused::Full);
    }
    let mut ninth = arrive_at(&admission, address(1), true, 500).unwrap();
    assert_eq!(ninth.identify(&Caller::Local), Ok(()));
    assert_eq!(admission.held().all(), 256);
    // The oldest is out, even if it has just named itself, and gives nothing back twice.
    assert_eq!(strangers[0].identify(&peer(1)), Err(Refused::Full));
    drop(strangers.remove(0));
    assert_eq!(admission.held().all(), 256);
    // No stranger takes a place, however long others stall.
    let refused = arrive_at(&admission, address(1000), false, 9_000).unwrap_err();
    assert_eq!(refused, Refused::Full);
    // Nobody who is known is put out.
    for place in &mut local {
        place.identify(&Caller::Local).unwrap();
    }
    for (n, place) in (0..).zip(&mut strangers) {
        place.identify(&peer(n / 8)).unwrap();
    }
    assert_eq!(
        arrive_at(&admission, address(1), true, 9_000).unwrap_err(),
        Refused::Full
    );
}

#[tokio::test]
async fn one_whose_place_is_taken_is_told() {
    let limits = Limits {
        all: 1,
        ..Limits::CONTRACT
    };
    let admission = Admission::new(limits);
    let now = Instant::now();
    let (_first, evicted) = admission.arrive(address(1), true, now).unwrap();
    let _second = admission.arrive(address(1), true, now + STALLS).unwrap();
    assert_eq!(evicted.await, Ok(()));
}

#[test]
fn a_peer_from_an_own_address_does_not_take_what_is_kept_for_local_callers() {
    let admission = admission();
    let _strangers = strangers(&admission);
    let mut place = arrive(&admission, address(1), true).unwrap();
    assert_eq!(place.identify(&peer(1)), Err(Refused::PeersFull));
    drop(place);
    assert_eq!(admission.held().own, 0);
}

#[test]
fn a_stranger_who_becomes_a_peer_stays_counted_once() {
    let admission = admission();
    let mut strangers = strangers(&admission);
    for (n, place) in (0..).zip(&mut strangers) {
        place.identify(&peer(n / 8)).unwrap();
    }
    let held = Held {
        peers: 248,
        ..Held::default()
    };
    assert_eq!(admission.held(), held);
    assert_eq!(
        arrive(&admission, address(1000), false).unwrap_err(),
        Refused::PeersFull
    );
    drop(strangers.pop());
    assert!(arrive(&admission, address(1000), false).is_ok());
}

#[test]
fn local_callers_share_the_256_and_have_no_quota() {
    let admission = admission();
    let mut places = Vec::new();
    for _ in 0..256 {
        let mut place = arrive(&admission, address(1), true).unwrap();
        place.identify(&Caller::Local).unwrap();
        places.push(place);
    }
    for is_own in [true, false] {
        let refused = arrive_at(&admission, address(1), is_own, 9_000).unwrap_err();
        assert_eq!(refused, Refused::Full);
    }
}

#[test]
fn a_source_has_eight_handshakes_and_an_ipv6_source_is_a_64() {
    let admission = admission();
    let v6 = |text: &str| text.parse::<IpAddr>().unwrap();
    let other = v6("2001:db8:0:1:ffff::");
    let mut places: Vec<Place> = (0..8)
        .map(|n| arrive(&admission, v6(&format!("2001:db8:0:1::{n}")), false).unwrap())
        .collect();
    assert_eq!(
        arrive(&admission, other, false).unwrap_err(),
        Refused::Source
    );
    assert!(arrive(&admission, v6("2001:db8:0:2::1"), false).is_ok());
    // One that is known does not shake hands any more.
    places[0].identify(&peer(1)).unwrap();
    assert!(arrive(&admission, other, false).is_ok());
    assert_eq!(
        Source::of(v6("::ffff:10.0.0.1")),
        Source::of(v6("10.0.0.1"))
    );
}

#[test]
fn a_site_has_eight_connections_and_one_past_its_share_counts_until_it_is_gone() {
    let admission = admission();
    let mut places = Vec::new();
    for n in 0..8 {
        let mut place = arrive(&admission, address(n), false).unwrap();
        place.identify(&peer(1)).unwrap();
        places.push(place);
    }
    let mut past = arrive(&admission, address(9), false).unwrap();
    assert_eq!(past.identify(&peer(1)), Err(Refused::Share));
    assert_eq!(admission.held().foreign, 1);
    assert_eq!(past.identify(&peer(2)), Ok(()));
    drop(past);
    drop(places);
    assert_eq!(admission.held(), Held::default());
    let account = admission.account();
    assert!(account.sites.is_empty() && account.sources.is_empty());
    assert!(account.shaking.is_empty());
}
