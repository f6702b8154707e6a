#pragma once

#include <cstdint>
#include <string>

#include "gallop/base/file.h"

namespace gallop {

/// Makes the C allocator retain freed memory for the next step, in huge pages if available, instead
/// of returning it to the system, which would clear every page again. Call once, before threads
/// start. Reserves 1.5 GiB of address space, not of memory, unless this is limited (ulimit -v).
/// Does nothing with allocators other than glibc's.
void retain_freed_memory();

/// Returns what has been freed to the system.
void return_freed_memory();
/// Bytes of freed memory that the C allocator retains. 0 with allocators other than glibc's.
int64_t retained_bytes();

/// What the system does about transparent huge pages: "always", "madvise" or "never"; empty if
/// unknown. From docs.kernel.org/admin-guide/mm/transhuge.html.
std::string transparent_huge_pages(
    const fs::path& file = "/sys/kernel/mm/transparent_hugepage/enabled");

}  // namespace gallop
