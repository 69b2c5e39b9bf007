//! Enumerations whose values have names for Python.

/// Define an enumeration with a name for each value.
macro_rules! codes {
    ($(#[$doc:meta])* $code:ident: $($(#[$value_doc:meta])* $value:ident $name:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $code { $($(#[$value_doc])* $value),* }

        impl $code {
            pub const fn name(self) -> &'static str {
                match self { $($code::$value => $name),* }
            }
        }
    };
}
pub(super) use codes;
