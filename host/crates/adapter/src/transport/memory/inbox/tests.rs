use bytes::Bytes;

use super::*;

fn message(number: usize) -> Received {
    Received::Message { channel: "c".to_owned(), payload: Bytes::from(number.to_string()) }
}

fn fill(inbox: &mut Inbox, numbers: std::ops::Range<usize>) {
    numbers.for_each(|number| inbox.message("c".to_owned(), number.to_string().into()));
}

#[test]
fn drops_the_oldest_messages_when_it_is_full() {
    let mut inbox = Inbox::default();
    inbox.restored();
    fill(&mut inbox, 0..MESSAGES_MAX + 3);
    assert_eq!(inbox.queue.len(), MESSAGES_MAX + 2);
    assert_eq!([inbox.next(), inbox.next()], [Some(Received::Restored), Some(Received::Missed(3))]);
    assert_eq!(inbox.next(), Some(message(3)));
}

#[test]
fn reports_a_lag_once() {
    let mut inbox = Inbox::default();
    inbox.lag(2);
    fill(&mut inbox, 0..4);
    let all: Vec<_> = std::iter::from_fn(|| inbox.next()).collect();
    assert_eq!(all, [Received::Missed(2), message(2), message(3)]);
}

#[test]
fn keeps_only_the_last_state_of_a_flapping_connection() {
    let mut inbox = Inbox::default();
    inbox.restored();
    for _ in 0..100 {
        inbox.interrupted();
        inbox.restored();
    }
    assert_eq!([inbox.next(), inbox.next()], [Some(Received::Restored), None]);
    for _ in 0..100 {
        inbox.interrupted();
        inbox.restored();
    }
    let all: Vec<_> = std::iter::from_fn(|| inbox.next()).collect();
    assert_eq!(all, [Received::Interrupted, Received::Restored]);
}
