#pragma once

#include <tiffio.h>

#include <cstdint>
#include <string_view>

namespace gallop::data {

/// A TIFF file in memory, opened by libtiff. Its messages are collected instead of printed.
class TiffFile {
 public:
  /// Throws DataError if the first directory is damaged.
  explicit TiffFile(std::string_view file);
  ~TiffFile();
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  TIFF* get() const { return tiff_; }

  /// The value of a tag, or its default.
  template <typename T>
  T tag(uint32_t tag) const {
    T value{};
    TIFFGetFieldDefaulted(tiff_, tag, &value);
    return value;
  }

  /// From here on, warnings are errors: libtiff warns of damaged pixels and goes on.
  void begin_pixels();
  /// Throws DataError with libtiff's message if there was an error or if `is_good` is false.
  void check(bool is_good);

 private:
  static int on_error(TIFF*, void* self, const char* module, const char* format, va_list values);
  static int on_warning(TIFF*, void* self, const char* module, const char* format, va_list values);
  static tmsize_t read(thandle_t self, void* out, tmsize_t bytes);
  static tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
  static toff_t seek(thandle_t self, toff_t offset, int whence);
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t self);

  void keep_message(const char* format, va_list values) noexcept;

  std::string_view file_;
  toff_t at_ = 0;
  bool warnings_are_errors_ = false;
  bool ends_in_pixels_ = false;
  char message_[200] = "";  // The first one.
  TIFF* tiff_ = nullptr;
};

}  // namespace gallop::data
