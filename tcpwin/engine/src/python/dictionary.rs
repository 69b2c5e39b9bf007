//! Fields of a structure as dictionary entries of the same names.

/// Copy these fields of a structure into a dictionary.
macro_rules! set_fields {
    ($dict:expr, $of:expr, $($field:ident),+ $(,)?) => {
        $($dict.set_item(stringify!($field), &$of.$field)?;)+
    };
}

pub(super) use set_fields;
