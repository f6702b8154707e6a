#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/cifar.h"
#include "gallop/data/memory_images.h"
#include "gallop/data/skips.h"
#include "unit/data/format_files.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const size_t label_bytes : {size_t{1}, size_t{2}}) {
    try {
      const size_t records = data::count_cifar_records(content, label_bytes, "input");
      std::vector<uint8_t> pixels(records * data::kCifarPixels);
      data::MemoryImages::Content images{.shape = {32, 32, 3}};
      images.labels.resize(records);
      images.class_names.resize(10);
      data::unpack_cifar(content, label_bytes, label_bytes - 1, pixels.data(),
                         images.labels.data());
      images.pixels = std::move(pixels);
      data::SkipPolicy skips(/*skips=*/true);
      const auto valid = data::with_valid_labels(
          std::move(images), [](int64_t) { return std::string("input"); }, skips);
      for (int64_t i = 0; i < valid->size(); ++i) require(valid->label(i) < 10);
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
