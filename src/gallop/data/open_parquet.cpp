#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/library.h"
#include "gallop/base/text.h"
#include "gallop/data/parquet_file.h"

namespace gallop::data {

namespace {

OpenParquet load() {
  // Never unloaded: files may be open until the program ends.
  static std::string error;
  static const std::shared_ptr<void> library =
      load_library(find_program_library("libgallop_parquet.so"), error);
  OpenParquet open = nullptr;
  if (library) {
    FunctionFinder finder(library.get());
    finder.find(open, kOpenParquet);
    if (open == nullptr) error = "it has no function " + finder.missing();
  }
  if (open != nullptr) return open;
  throw UsageError(
      fmt::format("Parquet files are read by libgallop_parquet.so, which cannot be loaded: {}. It "
                  "is built where "
                  "CMake finds Apache Arrow: run tools/fetch-arrow, then make",
                  printable(error)));
}

}  // namespace

std::shared_ptr<const ParquetFile> open_parquet(const std::string& path) {
  const OpenParquet open = load();
  std::string error;
  std::shared_ptr<const ParquetFile> file(open(path.c_str(), error));
  if (!file) throw DataError(fmt::format("{}: {}", printable(path), printable(error)));
  return file;
}

}  // namespace gallop::data
