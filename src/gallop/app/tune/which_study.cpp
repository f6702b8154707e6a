#include "gallop/app/tune/which_study.h"

#include <CLI/App.hpp>

namespace gallop::app {

void WhichStudy::add_to(CLI::App& parser) {
  parser.add_option("STUDY", study, "study name or folder")->required();
  parser.add_option("--studies", studies, "folder of the studies");
}

tune::StudyPlace WhichStudy::find() const { return tune::find_study(studies, study); }

}  // namespace gallop::app
