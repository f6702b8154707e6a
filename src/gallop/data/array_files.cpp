#include "gallop/data/array_files.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

constexpr const char* kEnding = ".npy";

std::string without_ending(const std::string& name) {
  return name.ends_with(kEnding) ? name.substr(0, name.size() - 4) : name;
}

}  // namespace

ArrayFiles::ArrayFiles(const fs::path& path) : name_(path.string()) {
  if (!fs::is_directory(path)) {
    archive_ = std::make_unique<ZipArchive>(path, ZipArchive::Methods::kStoredOrDeflated);
    files_ = {name_};
    for (const ZipEntry& entry : archive_->entries()) {
      add(without_ending(entry.name), fmt::format("{}: {}", name_, entry.name),
          archive_->bytes(entry));
    }
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      if (entry.path().extension() == kEnding) files_.push_back(entry.path().string());
    }
    std::sort(files_.begin(), files_.end());
    for (const std::string& file : files_) {
      mapped_.emplace_back(file);
      add(fs::path(file).stem().string(), file, mapped_.back().bytes());
    }
  }
  if (arrays_.empty()) throw DataError(printable(name_) + ": has no arrays");
}

void ArrayFiles::add(const std::string& name, const std::string& place, std::string_view content) {
  NpyArray array;
  try {
    array = parse_npy(content);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", printable(place), error.what()));
  }
  if (array.sizes.empty()) {
    throw DataError(fmt::format("{}: is a single number, and must have a row for each sample",
                                printable(place)));
  }
  const int64_t rows = array.sizes[0];
  if (rows == 0) throw DataError(printable(place) + ": has no rows");
  if (!arrays_.empty() && arrays_.begin()->second.sizes[0] != rows) {
    throw DataError(fmt::format(
        "{}: has {} rows, but '{}' has {}; arrays need a row for each sample", printable(place),
        rows, printable(arrays_.begin()->first), arrays_.begin()->second.sizes[0]));
  }
  arrays_.emplace(name, std::move(array));
}

}  // namespace gallop::data
