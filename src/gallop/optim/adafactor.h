#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Adafactor (Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost",
/// ICML 2018), as in PyTorch: for a matrix G, the last two dimensions of a gradient, it stores only
/// the mean squares of rows and columns. With t counted from 1:
///
///     b = 1 - t^beta2_decay
///     R = b * R + (1 - b) * mean of G^2 over columns,  C likewise over rows
///     V = R C / max(mean of R, eps1)               (of a vector: V = b * V + (1 - b) * G^2)
///     U = G / max(sqrt(V), eps1),  U = U / max(1, rms(U) / d)
///     p = p - lr * weight_decay * p
///     p = p - min(lr, 1 / sqrt(t)) * max(eps2, rms(p)) * U
///
/// rms is the root mean square. Without `relative_step` the learning rate is lr, and without
/// `scale_parameter` the factor rms(p) is omitted, for use with a custom schedule.
struct AdafactorConfig {
  double lr = 0.01;
  double beta2_decay = -0.8;
  double eps1 = 0;  ///< 0: the machine epsilon of the parameters' type, as in PyTorch.
  double eps2 = 1e-3;
  double d = 1;
  bool relative_step = true;
  bool scale_parameter = true;
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, AdafactorConfig& config);

/// State: for each parameter "row_var.NAME" and "col_var.NAME", or "variance.NAME" for a vector,
/// then "step" (t), fp32 [parameters].
std::unique_ptr<Optimizer> make_adafactor(const AdafactorConfig& config,
                                          const NamedTensors& parameters);

}  // namespace gallop::optim
