#pragma once

namespace gallop {

/// Makes the C allocator keep freed memory for the next step, in huge pages where the system has
/// them, instead of giving it back to the system, which would clear every page again. To be called
/// once, before threads start. Reserves 1.5 GiB of addresses, not of memory. Does nothing with an
/// allocator other than glibc's.
void retain_freed_memory();

}  // namespace gallop
