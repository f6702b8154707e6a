#include <cstring>

#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/idx.h"
#include "unit/data/format_files.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const int dimensions : {1, 3}) {
    data::Bytes content(size);
    if (size > 0) std::memcpy(content.data(), data, size);
    try {
      const data::IdxArray array = data::parse_idx(std::move(content), dimensions, "input");
      size_t values = 1;
      for (const int64_t length : array.sizes) values *= static_cast<size_t>(length);
      require(array.values.size() == values);
      // After the magic number and the sizes.
      require(4 + 4 * array.sizes.size() + values == size);
    } catch (const DataError&) {
    }
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {data::make_idx({3}, "abc"), data::make_idx({2, 2, 2}, "abcdefgh"),
          data::make_idx({0, 28, 28}, ""), data::make_idx({0xffffffff, 0xffffffff, 2}, "x")};
}
