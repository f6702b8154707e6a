#pragma once

/// Everything that a program needs that trains with Gallop: docs/library.md.

#include "gallop/app/cli.h"
#include "gallop/app/fit.h"
#include "gallop/base/philox.h"
#include "gallop/model/module_model.h"
#include "gallop/parallel/process_group.h"

namespace gallop {

template <typename Module>
train::Outcome Trainer::fit(std::shared_ptr<Module> module, const FitData& data,
                            LossFunction loss) {
  return fit_model([module] { return model::model_of(module); }, data, std::move(loss));
}

}  // namespace gallop
