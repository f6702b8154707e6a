#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/npy.h"
#include "unit/data/format_files.h"

using namespace gallop;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(bytes), size);
  try {
    const data::NpyArray array = data::parse_npy(file);
    size_t elements = 1;
    for (const int64_t length : array.sizes) elements *= static_cast<size_t>(length);
    require(array.values.size() == elements * c10::elementSize(array.dtype));
    // The values are the end of the file.
    require(array.values.data() >= file.data());
    require(array.values.data() + array.values.size() <= file.data() + file.size());
  } catch (const DataError&) {
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  for (const std::string header :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
        "{'descr': '|b1', 'fortran_order': True, 'shape': (24,), }",
        "{'shape': (), 'fortran_order': False, 'descr': '<i8'}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (9223372036854775807, 2), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }"}) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size());
    file += '\0';
    seeds.push_back(file + header + std::string(24, 'x'));
  }
  return seeds;
}
