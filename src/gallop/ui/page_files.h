#pragma once

#include <string_view>
#include <vector>

namespace gallop::ui {

/// A file of the page, embedded in the program.
struct PageFile {
  std::string_view path;  ///< "/main.js"; "/" is the page itself.
  std::string_view bytes;
};

/// The files of ui/page/ and the chart library, "/chart.js".
const std::vector<PageFile>& page_files();

}  // namespace gallop::ui
