#include "gallop/tune/pruners/none.h"

namespace gallop::tune {

namespace {

class None final : public Pruner {
 public:
  bool should_stop(const Study& /*study*/, const Trial& /*trial*/) override { return false; }
};

}  // namespace

void visit(config::Visitor& /*visitor*/, NoneConfig& /*config*/) {}

std::unique_ptr<Pruner> make_none(const NoneConfig& /*config*/, const StudySettings& /*settings*/) {
  return std::make_unique<None>();
}

}  // namespace gallop::tune
