#include "gallop/data/parquet_images.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/file_state.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_file.h"
#include "gallop/data/image_header.h"

namespace gallop::data {

namespace {

// The index of a leaf; the count of leaves if there is none.
size_t find_leaf(const ParquetFile& file, const std::string& name) {
  const auto& columns = file.columns();
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const ParquetColumn& column) { return column.name == name; });
  return static_cast<size_t>(found - columns.begin());
}

}  // namespace

ParquetImages::ParquetImages(std::shared_ptr<const ParquetGroups> groups,
                             std::vector<std::string> class_names, const Options& options)
    : LabeledImages(std::move(class_names), options.target_size),
      groups_(std::move(groups)),
      name_(options.column),
      orient_(options.orient) {
  const ParquetFile& first = groups_->file(0);
  const size_t count = first.columns().size();
  column_ = find_leaf(first, name_ + ".bytes");
  path_column_ = find_leaf(first, name_ + ".path");
  has_paths_ = column_ < count && path_column_ < count;
  if (column_ == count) column_ = find_leaf(first, name_);
  if (column_ == count) {
    throw DataError(fmt::format("{}: has no column '{}' of images",
                                printable(groups_->paths().front()), printable(name_)));
  }
}

void ParquetImages::add(size_t file, int64_t row, int32_t label, std::span<const float> targets) {
  const std::vector<int64_t>& rows = groups_->file(file).group_rows();
  Row place{.file = static_cast<uint32_t>(file), .group = 0, .row = row - 1, .line = row};
  while (place.row >= rows[place.group]) place.row -= rows[place.group++];
  rows_.push_back(place);
  add_target(label, targets);
}

std::vector<NamedFiles> ParquetImages::files() const {
  std::map<std::string, std::vector<std::string>> names;
  for (const Row& row : rows_) {
    const auto at = static_cast<size_t>(row.row);
    if (!has_paths_ || !groups_->file(row.file).may_be_missing(row.group, column_)) continue;
    if (!groups_->get(row.file, row.group, column_)->is_missing[at]) continue;
    const auto paths = groups_->get(row.file, row.group, path_column_);
    if (paths->is_missing[at]) continue;
    const std::string folder = fs::path(groups_->paths()[row.file]).parent_path().string();
    names[folder.empty() ? "." : folder].emplace_back((*paths)[at]);
  }
  std::vector<NamedFiles> files;
  for (auto& [folder, own] : names) files.push_back({.folder = folder, .names = std::move(own)});
  return files;
}

std::string ParquetImages::describe(int64_t index) const {
  const Row& row = rows_[static_cast<size_t>(index)];
  return fmt::format("{}:{}", printable(groups_->paths()[row.file]), row.line);
}

template <typename Use>
void ParquetImages::open(int64_t index, const Use& use) const {
  const Row& row = rows_[static_cast<size_t>(index)];
  const auto at = static_cast<size_t>(row.row);
  try {
    const auto values = groups_->get(row.file, row.group, column_);
    if (!values->is_missing[at]) return use((*values)[at]);
    const auto paths = has_paths_ ? groups_->get(row.file, row.group, path_column_) : nullptr;
    if (!paths || paths->is_missing[at]) throw DataError("the image is missing");
    const fs::path path =
        fs::path(groups_->paths()[row.file]).parent_path() / std::string((*paths)[at]);
    ThreadDecoder& own = thread_decoder();
    use(read_image_file(open_for_reading(path), path, own.file));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", describe(index), error.what()));
  }
}

void ParquetImages::read(int64_t index, const DecodeRequest& request, Image& image) const {
  DecodeRequest own_request = request;
  own_request.orient = request.orient && orient_;
  open(index,
       [&](std::string_view file) { thread_decoder().decoder.decode(file, own_request, image); });
}

ImageHeader ParquetImages::header(int64_t index) const {
  ImageHeader header;
  open(index, [&](std::string_view file) {
    header = *parse_image_header(file, static_cast<int64_t>(file.size()));
  });
  return orient_ ? oriented(header) : stored(header);
}

std::string ParquetImages::identity() const {
  std::string text = fmt::format("parquet {}{}", name_, orient_ ? "" : "\nas stored");
  for (const std::string& path : groups_->paths()) text += "\n" + fs::absolute(path).string();
  std::string places;
  for (const Row& row : rows_) places += fmt::format("{}:{}\n", row.file, row.line);
  return text + "\n" + xxh3_128(places);
}

uint64_t ParquetImages::stamp(int64_t index) const {
  const std::string& path = groups_->paths()[rows_[static_cast<size_t>(index)].file];
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? xxh3_64(file_state(info)) : 0;
}

int64_t ParquetImages::block(int64_t index) const {
  const Row& row = rows_[static_cast<size_t>(index)];
  return (int64_t{row.file} << 32) + row.group;
}

}  // namespace gallop::data
