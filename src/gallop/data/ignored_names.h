#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gallop::data {

/// Whether a file or folder of this name is not part of the data: a hidden one, or one created by
/// operating systems and programs (__MACOSX, Thumbs.db, @eaDir, ...).
bool is_ignored_name(std::string_view name);

/// Whether any component of a path such as "__MACOSX/train/._1.jpg" is an ignored name. "." and
/// ".." are not ignored.
bool has_ignored_name(std::string_view path);

/// The note of a reader about ignored images.
std::string hidden_images_note(const std::string& place, int64_t images, const std::string& first);

/// The note of a reader about a test split whose images have no class.
std::string unlabeled_test_note(const std::string& place, int64_t images);

}  // namespace gallop::data
