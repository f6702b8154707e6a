#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gallop::app {

/// An HTML report.
struct ReportPage {
  using Rows = std::vector<std::pair<std::string, std::string>>;
  std::string title;
  Rows facts;    ///< What was evaluated.
  Rows metrics;  ///< Names and values.
  /// A table with a heading, names of columns in its first row, and a note below.
  struct Table {
    std::string title;
    std::vector<std::vector<std::string>> rows;
    std::string note{};
  };
  std::vector<Table> tables{};
  std::vector<std::string> svgs{};  ///< As plot::to_svg() makes them.

  /// A row of PNG files with captions.
  struct Pictures {
    std::string caption;
    std::vector<std::pair<std::string, std::string>> files;  ///< Name and content.
  };
  /// A heading with text, lines of a recipe, and pictures.
  struct Section {
    std::string title;
    std::string text{};
    std::vector<std::string> code{};
    Rows legend{};  ///< Names of classes and their colors, "#e69f00".
    std::vector<Pictures> pictures{};
    bool is_dense = false;  ///< Many small pictures in a row.
    std::string note{};     ///< Below the pictures.
  };
  std::vector<Section> sections{};
};

/// Renders a self-contained HTML file, light or dark by the system's setting.
std::string to_html(const ReportPage& page);

}  // namespace gallop::app
