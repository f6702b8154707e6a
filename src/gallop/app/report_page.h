#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gallop::app {

/// A report as a page for browsers.
struct ReportPage {
  using Rows = std::vector<std::pair<std::string, std::string>>;
  std::string title;
  Rows facts;                     ///< What was evaluated.
  Rows metrics;                   ///< Names and values.
  std::vector<std::string> svgs;  ///< As plot::to_svg() makes them.

  /// PNG files in a row, with what each shows.
  struct Pictures {
    std::string caption;
    std::vector<std::pair<std::string, std::string>> files;  ///< Name and content.
  };
  std::string pictures_title{};
  Rows legend{};  ///< Names of classes and their colors, "#e69f00".
  std::vector<Pictures> pictures{};
};

/// One HTML file that needs no other, light or dark as the reader's system is.
std::string to_html(const ReportPage& page);

}  // namespace gallop::app
