//! The contract's types as component text, and the core signatures that they flatten to.

/// The types that differ between slots.
pub struct SlotTypes {
    pub function: &'static str,
    pub component_types: String,
    pub component_params: &'static str,
    pub core_params: &'static str,
}

const MOMENT: &str = r#"
  (type $moment' (record (field "now-ms" u64) (field "seed" u64) (field "key" u64)))
  (export $moment "moment" (type $moment'))
  (type $policy-error' (variant (case "bad-input" string) (case "internal" string)))
  (export $policy-error "policy-error" (type $policy-error'))"#;

const CALL: &str = r#"
  (type $call' (record (field "method" string) (field "params-bytes" u32) (field "waited-ms" u32)
    (field "left-ms" u32) (field "attempt" u32)))
  (export $call "call" (type $call'))"#;

const DEPARTURE: &str = r#"
  (type $departure' (enum "never-seen" "closed" "unregistered" "transport-lost" "replica-lost" "replica-silent"
    "drained" "evicted"))
  (export $departure "departure" (type $departure'))"#;

pub fn of(slot: &str) -> SlotTypes {
    match slot {
        "target" => SlotTypes {
            function: "choose",
            component_types: format!("{MOMENT}{CALL}{TARGET}"),
            component_params: r#"(param "at" $moment) (param "call" $call) (param "candidates" (list $candidate))
                (result (result $choice (error $policy-error)))"#,
            core_params: "(param $now i64) (param $seed i64) (param $key i64) (param i32 i32 i32 i32 i32 i32)
                (param $candidates i32) (param $count i32)",
        },
        "grace" => SlotTypes {
            function: "wait",
            component_types: format!("{MOMENT}{CALL}{DEPARTURE}{ABSENCE}"),
            component_params: r#"(param "at" $moment) (param "call" $call) (param "absence" $absence)
                (result (result u32 (error $policy-error)))"#,
            core_params: "(param i64 i64 i64) (param i32 i32 i32 i32 i32 i32) (param i32 i32 i32 i32 i32 i32 i32)",
        },
        "presence" => SlotTypes {
            function: "judge",
            component_types: format!("{MOMENT}{CALL}{DEPARTURE}{DOUBT}"),
            component_params: r#"(param "at" $moment) (param "call" $call) (param "doubt" $doubt)
                (result (result $verdict (error $policy-error)))"#,
            core_params: "(param i32)",
        },
        "settle" => SlotTypes {
            function: "decide",
            component_types: format!("{MOMENT}{SETTLE}"),
            component_params: r#"(param "at" $moment) (param "window-ms" u32) (param "incumbent" $incumbent)
                (param "newcomer" $newcomer) (param "history" (list $event))
                (result (result $verdict (error $policy-error)))"#,
            core_params: "(param i64 i64 i64) (param i32) (param i32 i32 i32 i32 i32) (param i32 i32 i32 i32)
                (param i32 i32)",
        },
        other => panic!("no slot {other}"),
    }
}

const TARGET: &str = r#"
  (type $traits' (flags "local" "recovered" "draining" "resumable" "foreign" "caller"))
  (export $traits "traits" (type $traits'))
  (type $candidate' (record (field "replica" u32) (field "registered-ms" u32) (field "idle-ms" u32)
    (field "in-flight" u32) (field "answer-us" u32) (field "unanswered" u32) (field "traits" $traits)))
  (export $candidate "candidate" (type $candidate'))
  (type $choice' (variant (case "pick" u32) (case "reject")))
  (export $choice "choice" (type $choice'))"#;

const ABSENCE: &str = r#"
  (type $absence' (record (field "cause" $departure) (field "gone-ms" u32) (field "departures" u32)
    (field "returns-ms" (list u32)) (field "waiting" u32) (field "replica-age-ms" u32)))
  (export $absence "absence" (type $absence'))"#;

const DOUBT: &str = r#"
  (type $doubt' (record (field "cause" $departure) (field "since-ms" u32) (field "sent-ms" u32)
    (field "resumable" bool) (field "returned" bool) (field "departures" u32) (field "returns-ms" (list u32))))
  (export $doubt "doubt" (type $doubt'))
  (type $verdict' (variant (case "abort") (case "hold" u32)))
  (export $verdict "verdict" (type $verdict'))"#;

const SETTLE: &str = r#"
  (type $liveness' (enum "alive" "doubtful" "gone"))
  (export $liveness "liveness" (type $liveness'))
  (type $happening' (enum "accepted" "refused" "evicted" "lost" "closed" "refreshed"))
  (export $happening "happening" (type $happening'))
  (type $incumbent' (record (field "liveness" $liveness) (field "age-ms" u32) (field "idle-ms" u32)
    (field "heartbeat-ms" u32) (field "local" bool)))
  (export $incumbent "incumbent" (type $incumbent'))
  (type $newcomer' (record (field "paired" bool) (field "same-fingerprint" bool) (field "same-address" bool)
    (field "polling" bool)))
  (export $newcomer "newcomer" (type $newcomer'))
  (type $event' (record (field "ago-ms" u32) (field "what" $happening)))
  (export $event "event" (type $event'))
  (type $verdict' (variant (case "accept") (case "refuse" u32) (case "beside" u32)))
  (export $verdict "verdict" (type $verdict'))"#;
