#include "gallop/data/image_table_files.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/find.h"
#include "gallop/data/table.h"

namespace gallop::data {

namespace {

// The file metadata.csv, metadata.jsonl, ... in a folder; empty if there is none.
std::string metadata_in(const fs::path& folder) {
  std::string found;
  for (const std::string& ending : table_endings()) {
    const fs::path path = folder / ("metadata" + ending);
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) continue;
    if (!found.empty()) {
      throw DataError(fmt::format("{} and {} both list the images of one folder; keep one of them",
                                  printable(found), printable(path.string())));
    }
    found = path.string();
  }
  return found;
}

}  // namespace

std::array<std::vector<std::string>, kParts> find_image_tables(const std::string& path) {
  const fs::path root = find_user_data("image-table", path);
  std::array<std::vector<std::string>, kParts> files;
  for (size_t i = 0; i < kParts; ++i) {
    for (const std::string& word : part_words(static_cast<Part>(i))) {
      const std::string table = metadata_in(root / word);
      if (table.empty()) continue;
      if (!files[i].empty()) {
        throw DataError(
            fmt::format("{} and {} both list the images of the {} split; keep one of them",
                        printable(files[i].front()), printable(table), kPartNames[i]));
      }
      files[i] = {table};
    }
  }
  if (!files[0].empty()) return files;
  if (const std::string table = metadata_in(root); !table.empty()) {
    files[0] = {table};
    return files;
  }
  return find_part_shards("image-table", path, table_endings());
}

}  // namespace gallop::data
