#include "gallop/data/formats/tiff_file.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

TiffFile::TiffFile(std::string_view file) : file_(file) {
  constexpr tmsize_t kMaxAllocation = tmsize_t{1} << 30;
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (options == nullptr) throw std::bad_alloc();
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMaxAllocation);
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, this);
  // "m": through these functions, and not by a pointer into the file.
  tiff_ =
      TIFFClientOpenExt("", "rm", this, read, write, seek, close, size, nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
  if (tiff_ == nullptr) check(false);
  message_[0] = '\0';
}

TiffFile::~TiffFile() {
  if (tiff_ != nullptr) TIFFClose(tiff_);
}

void TiffFile::begin_pixels() {
  message_[0] = '\0';
  warnings_are_errors_ = true;
}

void TiffFile::check(bool is_good) {
  const std::string reason = printable(message_);
  if (is_good && reason.empty()) return;
  if (ends_in_pixels_) throw DataError("truncated TIFF: the file ends within its pixels");
  throw DataError(
      fmt::format("damaged TIFF: {}", reason.empty() ? "it cannot be decoded" : reason));
}

void TiffFile::keep_message(const char* format, va_list values) noexcept {
  if (message_[0] == '\0') std::vsnprintf(message_, sizeof message_, format, values);
}

int TiffFile::on_error(TIFF*, void* self, const char*, const char* format, va_list values) {
  static_cast<TiffFile*>(self)->keep_message(format, values);
  return 1;
}

int TiffFile::on_warning(TIFF*, void* self, const char*, const char* format, va_list values) {
  auto& file = *static_cast<TiffFile*>(self);
  if (file.warnings_are_errors_) file.keep_message(format, values);
  return 1;
}

tmsize_t TiffFile::read(thandle_t self, void* out, tmsize_t bytes) {
  auto& file = *static_cast<TiffFile*>(self);
  const size_t rest = file.file_.size() - std::min<size_t>(file.at_, file.file_.size());
  if (std::cmp_greater(bytes, rest)) file.ends_in_pixels_ = file.warnings_are_errors_;
  if (rest == 0 || bytes <= 0) return 0;
  const size_t count = std::min(rest, static_cast<size_t>(bytes));
  std::memcpy(out, file.file_.data() + file.at_, count);
  file.at_ += count;
  return static_cast<tmsize_t>(count);
}

toff_t TiffFile::seek(thandle_t self, toff_t offset, int whence) {
  auto& file = *static_cast<TiffFile*>(self);
  const toff_t base = whence == SEEK_CUR ? file.at_ : whence == SEEK_END ? file.file_.size() : 0;
  return file.at_ = base + offset;
}

toff_t TiffFile::size(thandle_t self) { return static_cast<TiffFile*>(self)->file_.size(); }

}  // namespace gallop::data
