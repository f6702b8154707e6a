#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/gzip.h"
#include "unit/data/format_files.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kLimit = 1 << 20;
  try {
    const auto bytes = data::gunzip({reinterpret_cast<const char*>(data), size}, "input", kLimit);
    require(bytes.size() <= static_cast<size_t>(kLimit));
  } catch (const DataError&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const std::string text = "some text that is repeated, some text that is repeated";
  return {data::make_gzip(""), data::make_gzip(text), data::make_gzip(text) + data::make_gzip("b"),
          data::make_gzip(std::string(50'000, 'x')) + std::string(8, '\0')};
}
