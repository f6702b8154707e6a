#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/cifar.h"
#include "gallop/data/memory_images.h"
#include "unit/data/format_files.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const size_t label_bytes : {size_t{1}, size_t{2}}) {
    try {
      const size_t records = data::count_cifar_records(content, label_bytes, "input");
      std::vector<uint8_t> pixels(records * data::kCifarPixels);
      std::vector<int32_t> labels(records);
      data::unpack_cifar(content, label_bytes, label_bytes - 1, pixels.data(), labels.data());
      data::check_labels(labels, 10, "input");
    } catch (const DataError&) {
    }
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  const auto picture = data::make_picture(32, 32, 3, 1);
  const std::string one = data::make_cifar_record({3}, picture);
  return {one, one + one, data::make_cifar_record({19, 99}, picture)};
}
