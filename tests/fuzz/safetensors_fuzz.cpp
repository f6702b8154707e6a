// With libFuzzer: clang++ -std=c++20 -O1 -fsanitize=fuzzer,address,undefined -DFMT_HEADER_ONLY
// -Isrc
//   -Itests -isystem LIBTORCH/include tests/fuzz/safetensors_fuzz.cpp
//   src/gallop/tensor/safetensors_header.cpp src/gallop/base/text.cpp
#include <cstdio>
#include <cstdlib>

#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/tensor/safetensors_header.h"

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string file_of(gallop::SafetensorsHeader header) {
  std::string file = gallop::format_safetensors_header(header);
  for (const auto& entry : header.entries) file.append(static_cast<size_t>(entry.bytes), '\x5a');
  return file;
}

// Every byte after the header belongs to exactly one tensor, in order.
void check_layout(const gallop::SafetensorsHeader& header, std::string_view file) {
  if (header.entries.empty()) return;
  int64_t end = header.entries.front().begin;
  require(end >= 10, "data after the header");
  for (const auto& entry : header.entries) {
    require(entry.begin == end && entry.bytes >= 0, "tensors follow one another");
    int64_t bits = gallop::safetensors_bits(entry.dtype);
    for (const int64_t size : entry.shape) bits *= size;
    require(bits == entry.bytes * 8, "bytes match shape and type");
    end += entry.bytes;
  }
  require(end == static_cast<int64_t>(file.size()), "nothing after the last tensor");
}

void check_round_trip(const gallop::SafetensorsHeader& header) {
  const std::string file = file_of(header);
  const auto again = gallop::parse_safetensors_header(file, "again");
  require(again.metadata == header.metadata, "metadata survive");
  require(again.entries.size() == header.entries.size(), "tensors survive");
  check_layout(again, file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  gallop::SafetensorsHeader header;
  try {
    header = gallop::parse_safetensors_header(file, "fuzz");
  } catch (const gallop::DataError&) {
    return 0;
  }
  check_layout(header, file);
  check_round_trip(header);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      file_of({}),
      file_of({.entries = {}, .metadata = {{"format", "pt"}, {"\xc3\xa4", "\"quoted\"\\"}}}),
      file_of({.entries = {{.name = "w", .dtype = "F32", .shape = {2, 3}},
                           {.name = "empty", .dtype = "I64", .shape = {4, 0}},
                           {.name = "scalar", .dtype = "BF16", .shape = {}},
                           {.name = "flags", .dtype = "BOOL", .shape = {7}},
                           {.name = "tiny", .dtype = "F4", .shape = {2, 5}}},
               .metadata = {{"format", "pt"}}}),
  };
}
