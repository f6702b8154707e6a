#include "gallop/data/ignored_names.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::data {

bool is_ignored_name(std::string_view name) {
  if (name == "." || name == "..") return false;
  if (name.starts_with('.')) return true;
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  for (const std::string_view known :
       {"__macosx", "thumbs.db", "ehthumbs.db", "desktop.ini", "@eadir", "$recycle.bin",
        "system volume information", "lost+found"}) {
    if (lower == known) return true;
  }
  return false;
}

bool has_ignored_name(std::string_view path) {
  for (;;) {
    const size_t slash = path.find('/');
    if (is_ignored_name(path.substr(0, slash))) return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

std::string hidden_images_note(const std::string& place, int64_t images, const std::string& first) {
  return fmt::format("{}: {} {} ignored in hidden or system files and folders, such as {}", place,
                     format_count(images), images == 1 ? "image" : "images", first);
}

std::string unlabeled_test_note(const std::string& place, int64_t images) {
  return fmt::format(
      "{}: the {} {} of the test split {} no class and {} not evaluated on; "
      "'gallop predict RUN --data test' classifies them",
      place, format_count(images), images == 1 ? "image" : "images", images == 1 ? "has" : "have",
      images == 1 ? "is" : "are");
}

}  // namespace gallop::data
