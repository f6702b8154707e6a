#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gallop::data {

/// Whether a file or folder of this name is none of the data: a hidden one, or what operating
/// systems and programs leave in folders (__MACOSX, Thumbs.db, @eaDir, ...).
bool is_ignored_name(std::string_view name);

/// Whether any part of a path such as "__MACOSX/train/._1.jpg" is such a name. "." and ".." are
/// none.
bool has_ignored_name(std::string_view path);

/// What a reader says of images under such names.
std::string hidden_images_note(const std::string& place, int64_t images, const std::string& first);

/// What a reader says of a test part whose images have no class.
std::string unlabeled_test_note(const std::string& place, int64_t images);

}  // namespace gallop::data
