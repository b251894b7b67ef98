//! Enumerations that are words in JSON: one macro, so that word, schema and type cannot differ.

/// Declares an enumeration with its JSON words. The schema lists the words.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $text:literal ),+ $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $( $(#[$variant_meta])* #[serde(rename = $text)] $variant ),+
        }

        impl $name {
            /// All values, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word).ok_or_else(|| {
                    crate::UnknownWord {
                        word: word.to_owned(),
                        expected: [$($text),+].join(", "),
                    }
                })
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": [$($text),+]})
            }
        }
    };
}
pub(crate) use text_enum;

/// A word that an enumeration does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown value {word:?}, expected one of: {expected}")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// The words there are.
    pub expected: String,
}
