use super::*;
use crate::wire::ClientCount;

fn count(request_id: &str) -> Body {
    Body::BroadcastClientCount(ClientCount { request_id: request_id.to_owned(), client_count: 1 })
}

#[tokio::test]
async fn passes_answers_and_losses_to_open_requests() {
    let requests = OpenRequests::new(2);
    let (mut one, other) = (requests.open(Some("a")).unwrap(), requests.open(None).unwrap());
    assert!(requests.open(None).is_none());
    assert_eq!((requests.to("a"), requests.to("b")), (vec![one.id.clone()], vec![]));
    assert_ne!(one.id, other.id);
    requests.handle_answer("a".into(), count(&one.id));
    requests.handle_answer("a".into(), count(&other.id));
    drop(other);
    requests.fail(&one.id);
    requests.fail("nobody's");
    assert!(matches!(one.replies.recv().await, Some(Reply::Answer(answer)) if answer.server == "a"));
    assert!(matches!(one.replies.recv().await, Some(Reply::Lost)));
    assert!(requests.open(None).is_some());
    requests.fail_those(|server| server.is_none());
    requests.fail_those(|server| server == Some("a"));
    assert!(matches!(one.replies.recv().await, Some(Reply::Lost)));
    requests.give_up(&one.id);
    assert!(matches!(one.replies.recv().await, Some(Reply::Unanswered)));
    assert!(one.replies.try_recv().is_err());
}
