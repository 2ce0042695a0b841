#![allow(clippy::unwrap_used)]

use super::*;

const NOBODY: SocketId = SocketId(0);

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn room(method: &str) -> RpcRoom {
    RpcRoom { user: "u".into(), method: method.into() }
}

fn directory_of(sockets: u128) -> Directory {
    let mut directory = Directory::new(CallSettings::default());
    for id in 1..=sockets {
        directory.connect(SocketId(id), "u".into(), 0, Traits::default(), at(0));
    }
    directory
}

fn offered(directory: &Directory, method: &str) -> Vec<SocketId> {
    directory.candidates(&room(method), NOBODY, Reach::All, |_| 0, at(0)).sockets
}

#[test]
fn candidates_come_oldest_registration_first() {
    let mut directory = directory_of(3);
    for id in [2, 3, 1] {
        assert_eq!(directory.register(SocketId(id), "m".into(), Duration::ZERO, at(1)), Ok(true));
    }
    assert_eq!(offered(&directory, "m"), [SocketId(2), SocketId(3), SocketId(1)]);
    directory.unregister(SocketId(2), &"m".into(), at(2)).unwrap();
    directory.register(SocketId(2), "m".into(), Duration::ZERO, at(2)).unwrap();
    assert_eq!(offered(&directory, "m"), [SocketId(3), SocketId(1), SocketId(2)]);
    directory.disconnect(SocketId(1), Departure::Closed, at(3));
    assert_eq!(offered(&directory, "m"), [SocketId(3), SocketId(2)]);
    assert_eq!(offered(&directory, "other"), []);
}

#[test]
fn a_candidate_is_described() {
    let mut directory = Directory::new(CallSettings::default());
    let traits = Traits { local: true, resumable: true, ..Traits::default() };
    directory.connect(SocketId(1), "u".into(), 0, traits, at(0));
    directory.register(SocketId(1), "m".into(), Duration::ZERO, at(1_000)).unwrap();
    directory.touch(SocketId(1), at(3_000));
    directory.unanswered(SocketId(1));
    let describe = |directory: &Directory, caller, now| {
        directory.candidates(&room("m"), SocketId(caller), Reach::All, |_| 7, at(now)).inputs
    };
    let mut expected = Candidate {
        replica: 0,
        registered_ms: 3_000,
        idle_ms: 1_000,
        in_flight: 7,
        answer_us: 0,
        unanswered: 1,
        traits,
    };
    assert_eq!(describe(&directory, 9, 4_000), [expected]);
    directory.answered(SocketId(1), Duration::ZERO, at(4_000));
    expected = Candidate { idle_ms: 0, answer_us: 1, unanswered: 0, ..expected };
    assert_eq!(describe(&directory, 9, 4_000), [expected]);
    expected.traits.caller = true;
    assert_eq!(describe(&directory, 1, 4_000), [expected]);
}

#[test]
fn what_foreign_replicas_hold_is_described_by_its_traits_alone() {
    let mut directory = Directory::new(CallSettings::default());
    let traits = Traits { foreign: true, ..Traits::default() };
    directory.connect(SocketId(1), "u".into(), 3, traits, at(0));
    directory.register(SocketId(1), "m".into(), Duration::ZERO, at(0)).unwrap();
    directory.answered(SocketId(1), Duration::ZERO, at(1));
    directory.unanswered(SocketId(1));
    let expected = Candidate {
        replica: 3,
        registered_ms: u32::MAX,
        idle_ms: u32::MAX,
        in_flight: 0,
        answer_us: 0,
        unanswered: 0,
        traits,
    };
    assert_eq!(directory.candidates(&room("m"), NOBODY, Reach::All, |_| 7, at(2)).inputs, [expected]);
}

#[test]
fn the_oldest_registration_comes_first_whenever_it_became_known() {
    let mut directory = directory_of(4);
    let register = |directory: &mut Directory, id, age_ms, now| {
        directory.register(SocketId(id), "m".into(), Duration::from_millis(age_ms), at(now)).unwrap();
    };
    register(&mut directory, 1, 0, 1_000);
    let before = directory.registrations();
    // Older than the replica itself.
    register(&mut directory, 2, 5_000, 1_001);
    register(&mut directory, 3, 1, 1_001);
    register(&mut directory, 4, 5_001, 1_002);
    assert_eq!(offered(&directory, "m"), [2, 4, 1, 3].map(SocketId));
    let inputs = directory.candidates(&room("m"), NOBODY, Reach::All, |_| 0, at(1_002)).inputs;
    let ages: Vec<u32> = inputs.iter().map(|candidate| candidate.registered_ms).collect();
    assert_eq!(ages, [5_001, 5_001, 2, 2]);
    // Known later, though registered earlier.
    assert!(directory.is_served_since(&room("m"), before));
    for id in [3, 4, 2] {
        directory.disconnect(SocketId(id), Departure::Closed, at(1_003));
    }
    assert_eq!(offered(&directory, "m"), [SocketId(1)]);
    assert!(!directory.is_served_since(&room("m"), before));
}

#[test]
fn out_of_reach_is_counted_and_not_offered() {
    let mut directory = directory_of(1);
    directory.connect(SocketId(2), "u".into(), 1, Traits::default(), at(0));
    let within = |directory: &Directory, reach| {
        let candidates = directory.candidates(&room("m"), NOBODY, reach, |_| 0, at(1));
        (candidates.sockets, candidates.count)
    };
    directory.register(SocketId(2), "m".into(), Duration::ZERO, at(0)).unwrap();
    assert_eq!(within(&directory, Reach::Local), (vec![], 1));
    directory.register(SocketId(1), "m".into(), Duration::ZERO, at(0)).unwrap();
    assert_eq!(within(&directory, Reach::Local), (vec![SocketId(1)], 2));
    assert_eq!(within(&directory, Reach::All), (vec![SocketId(2), SocketId(1)], 2));
    assert!(directory.reaches(SocketId(2), Reach::All) && !directory.reaches(SocketId(2), Reach::Local));
    assert!(!directory.reaches(SocketId(3), Reach::All));
}

#[test]
fn a_forgotten_socket_begins_no_absence() {
    let mut directory = directory_of(2);
    directory.register(SocketId(1), "m".into(), Duration::ZERO, at(0)).unwrap();
    directory.disconnect(SocketId(1), Departure::TransportLost, at(1_000));
    directory.register(SocketId(2), "m".into(), Duration::ZERO, at(2_000)).unwrap();
    assert!(directory.forget(SocketId(2)) && !directory.forget(SocketId(2)));
    assert_eq!((directory.sockets(), directory.rooms()), (0, 0));
    let past = directory.past(&room("m"), at(3_000));
    assert_eq!((past.cause, past.departures, past.returns_ms), (Departure::TransportLost, 1, vec![1_000]));
    // The loss was made good once: whoever comes now did not come back from it.
    directory.connect(SocketId(3), "u".into(), 0, Traits::default(), at(3_000));
    directory.register(SocketId(3), "m".into(), Duration::ZERO, at(3_000)).unwrap();
    let inputs = directory.candidates(&room("m"), NOBODY, Reach::All, |_| 0, at(3_000)).inputs;
    assert!(!inputs[0].traits.recovered);
    assert_eq!(directory.past(&room("m"), at(3_000)).returns_ms, [1_000]);
}

#[test]
fn no_more_candidates_than_a_policy_takes() {
    let mut directory = directory_of(40);
    for id in 1..=40 {
        directory.register(SocketId(id), "m".into(), Duration::ZERO, at(1)).unwrap();
    }
    let candidates = directory.candidates(&room("m"), NOBODY, Reach::All, |_| 0, at(1));
    assert_eq!((candidates.sockets.len(), candidates.inputs.len(), candidates.count), (32, 32, 40));
    assert_eq!(candidates.sockets.last(), Some(&SocketId(32)));
}

#[test]
fn registering_again_keeps_the_first_registration() {
    let mut directory = directory_of(2);
    for (id, now, is_new) in [(1, 1, true), (2, 2, true), (1, 3, false)] {
        assert_eq!(directory.register(SocketId(id), "m".into(), Duration::ZERO, at(now)), Ok(is_new));
    }
    assert_eq!(offered(&directory, "m"), [SocketId(1), SocketId(2)]);
    let first = directory.candidates(&room("m"), NOBODY, Reach::All, |_| 0, at(4)).inputs[0];
    assert_eq!(first.registered_ms, 3);
}

#[test]
fn refuses_a_name_that_is_no_method() {
    let mut directory = directory_of(1);
    let longest: Arc<str> = "m".repeat(4_096).into();
    let too_long: Arc<str> = "m".repeat(4_097).into();
    assert_eq!(directory.register(SocketId(1), longest.clone(), Duration::ZERO, at(0)), Ok(true));
    assert_eq!(directory.unregister(SocketId(1), &longest, at(0)), Ok(true));
    for invalid in ["".into(), too_long] {
        let refused = Err(RegisterError::InvalidMethod);
        assert_eq!(directory.register(SocketId(1), invalid.clone(), Duration::ZERO, at(0)), refused);
        assert_eq!(directory.unregister(SocketId(1), &invalid, at(0)), refused);
    }
    assert_eq!(RegisterError::InvalidMethod.message(), "Invalid method name");
    assert_eq!(RegisterError::TooManyMethods.message(), "Too many methods");
    assert_eq!(RegisterError::UnknownSocket.message(), "Internal error");
}

#[test]
fn the_names_of_a_sockets_methods_have_a_bound_together() {
    let settings = CallSettings { method_bytes_per_socket_max: 5, ..CallSettings::default() };
    let mut directory = Directory::new(settings);
    directory.connect(SocketId(1), "u".into(), 0, Traits::default(), at(0));
    let mut register = |method: &str| directory.register(SocketId(1), method.into(), Duration::ZERO, at(0));
    assert_eq!((register("abc"), register("de")), (Ok(true), Ok(true)));
    assert_eq!((register("f"), register("de")), (Err(RegisterError::TooManyMethods), Ok(false)));
}

#[test]
fn a_socket_has_so_many_methods() {
    let settings = CallSettings { methods_per_socket_max: 2, ..CallSettings::default() };
    let mut directory = Directory::new(settings);
    directory.connect(SocketId(1), "u".into(), 0, Traits::default(), at(0));
    assert_eq!(directory.register(SocketId(1), "a".into(), Duration::ZERO, at(0)), Ok(true));
    assert_eq!(directory.register(SocketId(1), "b".into(), Duration::ZERO, at(0)), Ok(true));
    assert_eq!(directory.register(SocketId(1), "c".into(), Duration::ZERO, at(0)), Err(RegisterError::TooManyMethods));
    assert_eq!(directory.register(SocketId(1), "a".into(), Duration::ZERO, at(0)), Ok(false));
    directory.unregister(SocketId(1), &"a".into(), at(0)).unwrap();
    assert_eq!(directory.register(SocketId(1), "c".into(), Duration::ZERO, at(0)), Ok(true));
    let methods: Vec<&str> = directory.methods(SocketId(1)).map(AsRef::as_ref).collect();
    assert_eq!(methods, ["b", "c"]);
}

#[test]
fn a_socket_that_is_not_there_has_nothing() {
    let mut directory = directory_of(0);
    assert_eq!(directory.register(SocketId(1), "m".into(), Duration::ZERO, at(0)), Err(RegisterError::UnknownSocket));
    assert_eq!(directory.unregister(SocketId(1), &"m".into(), at(0)), Err(RegisterError::UnknownSocket));
    assert!(!directory.disconnect(SocketId(1), Departure::Closed, at(0)));
    directory.touch(SocketId(1), at(0));
    directory.answered(SocketId(1), Duration::ZERO, at(0));
    directory.unanswered(SocketId(1));
    assert_eq!((directory.sockets(), directory.rooms(), directory.remembered()), (0, 0, 0));
    assert_eq!((directory.user(SocketId(1)), directory.traits(SocketId(1))), (None, None));
    assert_eq!(directory.methods(SocketId(1)).count(), 0);
}

#[test]
fn keeps_users_apart() {
    let mut directory = directory_of(1);
    directory.connect(SocketId(2), "u:m".into(), 0, Traits::default(), at(0));
    directory.register(SocketId(1), "m:n".into(), Duration::ZERO, at(0)).unwrap();
    directory.register(SocketId(2), "n".into(), Duration::ZERO, at(0)).unwrap();
    assert_eq!(offered(&directory, "m:n"), [SocketId(1)]);
    assert!(directory.has(&room("m:n"), SocketId(1)));
    assert!(!directory.has(&room("n"), SocketId(2)));
}

#[test]
fn departures_are_remembered_by_method() {
    let mut directory = directory_of(2);
    directory.register(SocketId(1), "a".into(), Duration::ZERO, at(0)).unwrap();
    directory.register(SocketId(1), "b".into(), Duration::ZERO, at(0)).unwrap();
    directory.register(SocketId(2), "b".into(), Duration::ZERO, at(0)).unwrap();
    let before = directory.registrations();
    directory.disconnect(SocketId(1), Departure::TransportLost, at(1_000));
    assert!(!directory.is_served(&room("a")) && directory.is_served(&room("b")));
    assert!(!directory.is_served_since(&room("b"), before));
    directory.connect(SocketId(3), "u".into(), 0, Traits::default(), at(1_500));
    directory.register(SocketId(3), "a".into(), Duration::ZERO, at(1_500)).unwrap();
    directory.register(SocketId(3), "b".into(), Duration::ZERO, at(1_500)).unwrap();
    assert!(directory.is_served_since(&room("a"), before) && directory.is_served_since(&room("b"), before));
    let past = |method| directory.past(&room(method), at(2_000));
    assert_eq!((past("a").cause, past("a").gone_ms), (Departure::TransportLost, 1_000));
    // Of `b` there was always one.
    assert_eq!((past("a").returns_ms, past("b").returns_ms), (vec![500], vec![]));
    assert_eq!((past("a").departures, past("b").departures), (1, 1));
}

#[test]
fn one_more_daemon_does_not_prolong_the_memory_of_a_departure() {
    let mut directory = directory_of(3);
    directory.register(SocketId(1), "m".into(), Duration::ZERO, at(0)).unwrap();
    directory.register(SocketId(2), "m".into(), Duration::ZERO, at(0)).unwrap();
    directory.unregister(SocketId(1), &"m".into(), at(0)).unwrap();
    directory.register(SocketId(3), "m".into(), Duration::ZERO, at(1_800_000)).unwrap();
    assert_eq!(directory.past(&room("m"), at(3_599_999)).cause, Departure::Unregistered);
    assert_eq!(directory.past(&room("m"), at(3_600_000)).cause, Departure::NeverSeen);
}
