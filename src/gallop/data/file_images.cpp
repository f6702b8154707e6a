#include "gallop/data/file_images.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/data/image_codec.h"

namespace gallop::data {

FileImages::FileImages(std::vector<std::string> paths) : paths_(std::move(paths)) {}

void FileImages::read(int64_t index, const DecodeRequest& request, Image& image) const {
  const std::string& path = paths_[static_cast<size_t>(index)];
  const std::string content = read_file(path, int64_t{1} << 30);
  try {
    thread_decoder().decoder.decode(content, request, image);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", printable(path), error.what()));
  }
}

}  // namespace gallop::data
