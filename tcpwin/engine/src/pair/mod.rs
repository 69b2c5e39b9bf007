//! Compare two captures of the same traffic taken at two points: the fate of each packet between them.
//!
//! In: the packets of both, however damaged. Out: pairs of connections, the fate of every packet, changes made on the
//! path, and the clocks. The captures are read once, in step; packets are stored only while between the two points.

mod ahead;
mod altered;
mod anchor;
mod by_sequence;
mod clock;
mod epochs;
mod evidence;
mod flows;
mod keys;
mod matching;
mod meet;
mod merged;
mod outcome;
mod packet;
mod parts;
mod path_direction;
mod resent;
mod run;
mod settings;
mod tally;
mod waiting;

pub use altered::{Change, Field};
pub use anchor::first_offset;
pub use clock::Piece;
pub use merged::Points;
pub use outcome::{Alone, Ends, Lane, Outcome, Paired};
pub use packet::Side;
pub use resent::{ResendCause, Resent};
pub use run::{pair, NoRows, Row, Rows};
pub use tally::{Count, Delay, Fate};
