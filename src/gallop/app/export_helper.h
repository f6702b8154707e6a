#pragma once

namespace gallop::app {

/// The text of tools/gallop_export.py, embedded in the program.
const char* export_helper();

}  // namespace gallop::app
