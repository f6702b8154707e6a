#pragma once

#include <string>

#include "gallop/tune/study_place.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

/// Options of commands that operate on one study.
struct WhichStudy {
  std::string study;
  std::string studies = "studies";

  void add_to(CLI::App& parser);
  tune::StudyPlace find() const;
};

}  // namespace gallop::app
