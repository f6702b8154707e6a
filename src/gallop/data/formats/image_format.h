#pragma once

#include <string>
#include <string_view>

namespace gallop::data {

enum class ImageFormat { kJpeg, kPng, kGif, kWebp, kTiff };

/// "JPEG", "PNG", "GIF", "WebP" or "TIFF".
const char* name_of(ImageFormat format);

/// Detects the format of a file from its first bytes. Throws DataError, without the file's name, if
/// it is none of these, or if Gallop was built without the library that decodes it.
ImageFormat detect_format(std::string_view start);

/// Whether Gallop was built with the decoder of a format.
bool has_decoder(ImageFormat format);

/// Whether a file name ends in .jpg, .jpeg, .png, .gif, .webp, .tif or .tiff, case-insensitive.
bool has_image_ending(std::string_view name);

/// Whether a file name has the extension of an unsupported image format (.bmp, .jfif, .avif, ...).
bool is_unread_image(std::string_view name);

/// The endings of has_image_ending(), for messages: ".jpg, .jpeg, ... or .tiff".
std::string image_endings(std::string_view last_word = "or");

}  // namespace gallop::data
