//! Declares enums whose variants are the values of a metric's label.

/// Declares such an enum, with the label of each variant.
macro_rules! label_values {
    ($(#[$meta:meta])* pub(crate) enum $name:ident { $($(#[$doc:meta])* $variant:ident = $label:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All variants, in their order.
            #[allow(dead_code, reason = "not every enum is iterated")]
            pub(in crate::telemetry) const ALL: [Self; [$($label),*].len()] = [$(Self::$variant),*];
            /// Their labels, in the same order.
            pub(in crate::telemetry) const LABELS: [&'static str; Self::ALL.len()] = [$($label),*];

            /// The label.
            #[allow(dead_code, reason = "not every label is needed alone")]
            pub(crate) const fn as_str(self) -> &'static str {
                Self::LABELS[self as usize]
            }
        }
    };
}

pub(super) use label_values;
