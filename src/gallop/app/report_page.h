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
};

/// One HTML file that needs no other, light or dark as the reader's system is.
std::string to_html(const ReportPage& page);

}  // namespace gallop::app
