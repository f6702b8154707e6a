#include "gallop/data/folder_images.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/device_error.h"
#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_file.h"
#include "gallop/data/image_header.h"

namespace gallop::data {

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

FolderImages::FolderImages(fs::path path, std::vector<std::string> class_names, bool orient,
                           int64_t target_size)
    : LabeledImages(std::move(class_names), target_size),
      path_(std::move(path)),
      folder_(open_for_reading(path_)),
      orient_(orient) {}

void FolderImages::add(const std::string& file, int32_t label, std::span<const float> targets) {
  starts_.push_back(names_.size());
  names_ += file;
  names_ += '\0';
  add_target(label, targets);
}

std::string FolderImages::describe(int64_t index) const {
  return printable((path_ / name(index)).string());
}

void FolderImages::read(int64_t index, const DecodeRequest& request, Image& image) const {
  DecodeRequest own_request = request;
  own_request.orient = request.orient && orient_;
  open(index, [&](const FileDescriptor& file, ThreadDecoder& own) {
    own.decoder.decode(read_image_file(file, path_ / name(index), own.file), own_request, image);
  });
}

ImageHeader FolderImages::header(int64_t index) const {
  ImageHeader header;
  open(index, [&](const FileDescriptor& file, ThreadDecoder& own) {
    struct stat info = {};
    if (fstat(file.get(), &info) != 0) throw DataError("cannot read: " + reason(errno));
    if (S_ISDIR(info.st_mode)) throw DataError("cannot read: " + reason(EISDIR));
    header = read_image_header(file, path_ / name(index), 0, info.st_size, own.file);
  });
  return orient_ ? oriented(header) : stored(header);
}

std::string FolderImages::identity() const {
  return fmt::format("folder {}\n{}{}", fs::absolute(path_).string(), xxh3_128(names_),
                     orient_ ? "" : "\nas stored");
}

uint64_t FolderImages::stamp(int64_t index) const {
  struct stat info = {};
  // A missing file is never cached.
  if (fstatat(folder_.get(), name(index), &info, 0) != 0) return 0;
  return xxh3_64(file_state(info));
}

template <typename Use>
void FolderImages::open(int64_t index, const Use& use) const {
  try {
    const FileDescriptor file(openat(folder_.get(), name(index), O_RDONLY | O_CLOEXEC));
    if (!file) {
      check_machine_error(path_ / name(index), "open", errno);
      throw DataError("cannot open: " + reason(errno));
    }
    use(file, thread_decoder());
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", describe(index), error.what()));
  }
}

}  // namespace gallop::data
