#include "gallop/data/file_images.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/formats/image_format.h"
#include "gallop/data/ignored_names.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_header.h"

namespace gallop::data {

FileImages::FileImages(std::vector<std::string> paths, bool orient)
    : paths_(std::move(paths)), orient_(orient) {}

void FileImages::read(int64_t index, const DecodeRequest& request, Image& image) const {
  const std::string& path = paths_[static_cast<size_t>(index)];
  const std::string content = read_file(path, int64_t{1} << 30);
  DecodeRequest own_request = request;
  own_request.orient = request.orient && orient_;
  try {
    thread_decoder().decoder.decode(content, own_request, image);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", printable(path), error.what()));
  }
}

ImageHeader FileImages::header(int64_t index) const {
  const std::string& path = paths_[static_cast<size_t>(index)];
  try {
    const FileDescriptor file = open_for_reading(path);
    std::vector<char> buffer;
    const ImageHeader header =
        read_image_header(file, path, 0, static_cast<int64_t>(fs::file_size(path)), buffer);
    return orient_ ? oriented(header) : stored(header);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", printable(path), error.what()));
  }
}

std::vector<std::string> image_files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw DataError(fmt::format("{}: there is no such folder", printable(folder)));
  }
  fs::recursive_directory_iterator at(folder, error);
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::error_code ignored;
    if (is_ignored_name(name)) {
      at.disable_recursion_pending();
    } else if (has_image_ending(name) && !at->is_directory(ignored)) {
      files.push_back(at->path().string());
    }
  }
  if (error) {
    throw DataError(fmt::format("{}: cannot read: {}", printable(folder), error.message()));
  }
  if (files.empty()) {
    throw DataError(fmt::format("{}: no images ({}) in it", printable(folder), image_endings()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace gallop::data
