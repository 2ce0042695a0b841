//! Makes the tests of the contract for one rig.

/// Makes the tests of the contract. `$attributes` of `tokio::test`, `$rig` an expression that makes a rig.
macro_rules! contract {
    ([$($attributes:tt)*], $rig:expr) => {
        $crate::contract_tests::contract! {
            @ [$($attributes)*], $rig, contract:
            entries_are_read_in_the_order_they_were_sent
            a_read_of_nothing_is_empty
            a_range_is_the_last_entries_up_to_one
            a_range_does_not_wait_for_a_read_that_blocks
            a_blocked_read_wakes
            a_read_that_is_dropped_does_not_disturb_the_next
            an_extent_counts_what_was_trimmed
            a_restart_is_told_and_subscriptions_survive_it
            restarts_are_told_one_after_the_other
            a_closed_connection_stays_closed
        }
        $crate::contract_tests::contract! {
            @ [$($attributes)*], $rig, subscriptions:
            messages_come_in_the_order_they_were_sent
            a_payload_is_bytes
            a_subscription_is_there_when_it_is_confirmed
            subscribers_are_counted
            nothing_comes_from_a_channel_that_was_left
            messages_that_are_not_taken_are_missed_and_counted
        }
    };
    (@ $attributes:tt, $rig:expr, $module:ident: $($name:ident)*) => {
        $($crate::contract_tests::contract! { @test $attributes, $rig, $module, $name })*
    };
    (@test [$($attributes:tt)*], $rig:expr, $module:ident, $name:ident) => {
        #[tokio::test($($attributes)*)]
        async fn $name() {
            $crate::$module::$name(&mut $rig).await;
        }
    };
}

pub(crate) use contract;
