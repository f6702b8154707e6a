#pragma once

namespace gallop {

/// Whether the file descriptor is a pipe or socket whose reading end is closed, so that writing to
/// it raises SIGPIPE. Async-signal-safe; keeps errno.
bool is_reader_gone(int file);

/// Opens /dev/null for standard streams that the parent has closed. Otherwise the next opened
/// files, such as a run's log, would receive output.
void open_closed_streams();

}  // namespace gallop
