use _engine::*;
fn main(){ let f: Vec<String> = std::env::args().skip(1).collect();
 let input = capture::MergedReader::open(&f).unwrap();
 let x = output::pass::run(input, &mut output::pass::NoSink, |_| true);
 println!("{} connections {} segments", x.tracker.connections.len(), x.counters.segments); }
