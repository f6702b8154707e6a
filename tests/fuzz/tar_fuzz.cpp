#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/shard.h"
#include "unit/data/format_files.h"

using namespace gallop;

namespace {

// Most changes of a header are detected by its checksum; fixing it tests the code behind it.
void repair_checksums(std::string& archive) {
  for (size_t at = 0; at + 512 <= archive.size(); at += 512) {
    if (archive.compare(at + 257, 5, "ustar") != 0) continue;
    archive.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(archive[i]);
    char digits[8];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    archive.replace(at + 148, 7, digits, 7);
  }
}

void read(const std::string& archive) {
  const FileDescriptor file(memfd_create("input", MFD_CLOEXEC));
  require(static_cast<bool>(file));
  require(write(file.get(), archive.data(), archive.size()) ==
          static_cast<ssize_t>(archive.size()));
  for (const bool tolerate_damage : {false, true}) {
    try {
      const data::Shard shard = data::read_shard(file, "input", tolerate_damage);
      for (const auto& skipped : shard.skips.counts()) require(skipped.count > 0);
      for (const auto& image : shard.images) {
        require(image.offset >= 0 && image.size >= 0);
        require(image.size <= static_cast<int64_t>(archive.size()) - image.offset);
        require(image.label >= -1 && image.label < data::kMaxClasses);
      }
    } catch (const DataError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string archive(reinterpret_cast<const char*>(data), size);
  read(archive);
  repair_checksums(archive);
  read(archive);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace gallop::data;
  const std::string name = std::string(150, 'd') + "/1.jpg";
  return {
      make_tar({{"1.jpg", "image"}, {"1.cls", "7"}, {"2.png", "image"}, {"2.cls", "0"}}),
      make_tar({{"cat/1.jpg", std::string(700, 'x')}, {"dog/1.small.png", ""}}),
      make_tar_member("@", name + '\0', 'L') + make_tar({{"1.jpg", "x"}}),
      make_tar_member("pax", make_pax_record("path", name) + make_pax_record("size", "1"), 'x') +
          make_tar({{"1.jpg", "x"}}),
      make_tar_member("g", make_pax_record("comment", "x"), 'g') + make_tar_header("link", 9, '1') +
          make_tar({{"a/1.jpg", "x"}}),
      make_tar_link("a/2.jpg", "1.jpg") + make_tar_link("a/2.cls", "a/1.cls", '1') +
          make_tar({{"a/1.jpg", "x"}, {"a/1.cls", "1"}}),
      make_tar_link("dog", "cat") + make_tar_link("cat/3.jpg", "../dog/../cat/1.jpg") +
          make_tar({{"cat/1.jpg", "x"}, {"cat/2.png", "x"}}),
      make_tar_link("a", "b") + make_tar_link("b", "a") + make_tar_link("c.jpg", "../x") +
          make_tar_member("K", name + '\0', 'K') + make_tar_link("d.jpg", "") +
          make_tar_member("pax", make_pax_record("linkpath", name), 'x') +
          make_tar_link("e.jpg", "", '1') + make_tar({{name, "x"}}),
      make_tar_member("s.jpg", "x", 'S') +
          make_tar_member("pax", make_pax_record("GNU.sparse.name", "t.jpg"), 'x') +
          make_tar_member("u.jpg", "x") + make_tar_header("v.png", 0, '6') + make_tar_end()};
}
