#include "gallop/data/image_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "gallop/base/device_error.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

void reserve_bytes(std::vector<char>& buffer, size_t bytes) {
  if (buffer.size() < bytes) buffer.resize(std::max(bytes, buffer.size() * 2));
}

std::string_view read_image_file(const FileDescriptor& file, const fs::path& path,
                                 std::vector<char>& buffer) {
  constexpr size_t kFirstBuffer = 1 << 16;
  reserve_bytes(buffer, kFirstBuffer);
  size_t used = 0;
  for (;;) {
    if (used == buffer.size()) {
      if (static_cast<int64_t>(used) >= kMaxImageFileBytes) {
        throw DataError(fmt::format("longer than {}", format_bytes(kMaxImageFileBytes)));
      }
      reserve_bytes(buffer, used + 1);
    }
    const ssize_t got = ::read(file.get(), buffer.data() + used, buffer.size() - used);
    if (got > 0) {
      used += static_cast<size_t>(got);
    } else if (got == 0) {
      return {buffer.data(), used};
    } else if (errno != EINTR) {
      check_machine_error(path, "read", errno);
      throw DataError(fmt::format("cannot read: {}", std::generic_category().message(errno)));
    }
  }
}

}  // namespace gallop::data
