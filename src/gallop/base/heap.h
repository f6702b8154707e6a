#pragma once

namespace gallop {

/// Makes the C allocator keep freed memory for the next step instead of giving it back to the
/// system, which then clears every page again. To be called once, before threads start. Does
/// nothing with an allocator other than glibc's.
void keep_freed_memory();

}  // namespace gallop
