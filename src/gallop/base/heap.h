#pragma once

namespace gallop {

/// Makes the C allocator retain freed memory for the next step, in huge pages if available, instead
/// of returning it to the system, which would clear every page again. Call once, before threads
/// start. Reserves 1.5 GiB of address space, not of memory. Does nothing with allocators other than
/// glibc's.
void retain_freed_memory();

}  // namespace gallop
