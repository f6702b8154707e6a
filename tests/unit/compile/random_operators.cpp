#include "unit/compile/random_operators.h"

#include <array>
#include <optional>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/index.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/rsub.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

namespace gallop::compile {

namespace {

using A = const Arguments&;
using at::Tensor;

constexpr std::array kFormats = {at::kFloat, at::kBFloat16, at::kDouble, at::kLong, at::kBool};

void need(bool fits, const char* what) {
  if (!fits) throw Unfit(what);
}

const Tensor& number(const Tensor& x) {
  need(x.scalar_type() != at::kBool, "a number");
  return x;
}

const Tensor& fraction(const Tensor& x) {
  need(x.is_floating_point(), "a floating-point number");
  return x;
}

int64_t dim(A a) {
  need(a[0].dim() > 0, "a dimension");
  return a.p % a[0].dim();
}

double small(int64_t p) { return static_cast<double>(p % 9 - 4) / 4; }

// Sometimes below 0 and 0 at once.
double signed_zero_or_small(A a) { return a.q % 4 == 0 ? -0.0 : small(a.p); }

Tensor rows_of(const Tensor& x) {
  need(x.dim() > 0 && x.numel() > 0, "rows");
  return x.reshape({-1, x.size(-1)});
}

Tensor piece(const std::vector<Tensor>& pieces, int64_t which) {
  need(!pieces.empty(), "pieces");
  return pieces[static_cast<size_t>(which) % pieces.size()];
}

// What is written may be state that requires gradients.
template <typename Write>
Tensor changed(A a, const Write& write) {
  std::optional<at::NoGradGuard> no_grad;
  if (a.q % 3 != 0 || a[0].is_leaf()) no_grad.emplace();
  Tensor target = a[0];
  write(target);
  return target;
}

// LibTorch finds most programs that read what they write in another order, and calls them wrong.
void need_apart(const Tensor& written, const Tensor& read) {
  need(!written.is_alias_of(read), "memory of its own");
}

Tensor row_numbers(const Tensor& x, int64_t rows) {
  need(x.scalar_type() == at::kLong && rows > 0, "whole numbers");
  return x.remainder(rows);
}

Tensor batch_norm(A a) {
  const Tensor &mean = a[1], &variance = a[2];
  const int64_t channels = mean.numel();
  const at::ScalarType type = fraction(a[0]).scalar_type();
  need(type != at::kBFloat16 && mean.scalar_type() == type && variance.scalar_type() == type &&
           mean.dim() == 1 && variance.dim() == 1,
       "rows and statistics in one format");
  need(channels > 0 && variance.numel() == channels && !mean.requires_grad() &&
           !variance.requires_grad() && a[0].numel() > channels && a[0].numel() % channels == 0,
       "rows of as many channels");
  return at::batch_norm(a[0].reshape({-1, channels}), {}, {}, mean, variance, /*training=*/true,
                        0.1, 1e-5, false);
}

Tensor attention(A a) {
  need(a[0].dim() == 3 && a[0].numel() > 0 && fraction(a[0]).scalar_type() == a[1].scalar_type() &&
           a[0].sizes() == a[1].sizes(),
       "queries and keys");
  const Tensor q = a[0].unsqueeze(0), k = a[1].unsqueeze(0);
  return at::scaled_dot_product_attention(q, k, k, {}, 0.0, a.p % 2 == 0).squeeze(0);
}

constexpr Operation kOperations[] = {
    // Elementwise, unary.
    {"neg", 1, true, [](A a) { return number(a[0]).neg(); }},
    {"abs", 1, true, [](A a) { return number(a[0]).abs(); }},
    {"relu", 1, true, [](A a) { return number(a[0]).relu(); }},
    {"square", 1, true, [](A a) { return number(a[0]).square(); }},
    {"tanh", 1, true, [](A a) { return a[0].tanh(); }},
    {"sigmoid", 1, true, [](A a) { return a[0].sigmoid(); }},
    {"exp", 1, true, [](A a) { return number(a[0]).clamp_max(4).exp(); }},
    {"erf", 1, true, [](A a) { return a[0].erf(); }},
    {"sin", 1, true, [](A a) { return a[0].sin(); }},
    {"root", 1, true, [](A a) { return number(a[0]).abs().add(0.5).sqrt(); }},
    {"log", 1, true, [](A a) { return number(a[0]).abs().log1p(); }},
    {"reciprocal", 1, false, [](A a) { return a[0].reciprocal(); }},
    {"gelu", 1, true, [](A a) { return at::gelu(fraction(a[0]), a.p % 2 == 0 ? "none" : "tanh"); }},
    {"silu", 1, true, [](A a) { return at::silu(fraction(a[0])); }},
    {"sign", 1, false, [](A a) { return a[0].sign(); }},
    {"floor", 1, false, [](A a) { return number(a[0]).floor(); }},
    {"not", 1, false, [](A a) { return a[0].logical_not(); }},
    {"isnan", 1, false, [](A a) { return a[0].isnan(); }},
    {"add_number", 1, true, [](A a) { return a[0].add(small(a.p)); }},
    {"mul_number", 1, true, [](A a) { return a[0].mul(signed_zero_or_small(a)); }},
    {"minus_from", 1, true, [](A a) { return at::rsub(number(a[0]), small(a.p), 2); }},
    {"add_whole", 1, true, [](A a) { return a[0].add(a.p % 5 - 2); }},
    {"clamp", 1, true, [](A a) { return number(a[0]).clamp(-1, small(a.p) + 1); }},
    {"greater", 1, false, [](A a) { return a[0].gt(small(a.p)); }},
    // Elementwise, several inputs.
    {"add", 2, true, [](A a) { return a[0].add(a[1]); }},
    {"add_times", 2, true, [](A a) { return number(a[0]).add(number(a[1]), a.p % 5 - 2); }},
    {"sub", 2, true, [](A a) { return number(a[0]).sub(number(a[1])); }},
    {"mul", 2, true, [](A a) { return a[0].mul(a[1]); }},
    {"div", 2, true, [](A a) { return a[0].div(number(a[1]).abs().add(1)); }},
    {"div_plain", 2, false, [](A a) { return a[0].div(a[1]); }},
    {"maximum", 2, true, [](A a) { return at::maximum(a[0], a[1]); }},
    {"minimum", 2, true, [](A a) { return at::minimum(a[0], a[1]); }},
    {"less", 2, false, [](A a) { return a[0].lt(a[1]); }},
    {"equal", 2, false, [](A a) { return a[0].eq(a[1]); }},
    {"and", 2, false, [](A a) { return a[0].logical_and(a[1]); }},
    {"where", 3, false, [](A a) { return at::where(a[0].gt(0), a[1], a[2]); }},
    {"masked_fill", 2, false, [](A a) { return a[0].masked_fill(a[1].gt(0), small(a.p)); }},
    {"addcmul", 3, true, [](A a) { return a[0].addcmul(a[1], a[2], 0.5); }},
    {"lerp", 2, true, [](A a) { return fraction(a[0]).lerp(a[1], small(a.p)); }},
    {"gelu_backward", 2, true, [](A a) { return at::gelu_backward(fraction(a[0]), a[1]); }},
    // Casts and copies.
    {"to_float", 1, true, [](A a) { return a[0].to(at::kFloat); }},
    {"to_double", 1, true, [](A a) { return a[0].to(at::kDouble); }},
    {"to_bf16", 1, true, [](A a) { return a[0].to(at::kBFloat16); }},
    {"to_bool", 1, false, [](A a) { return a[0].to(at::kBool); }},
    {"to_whole", 1, false,
     [](A a) { return a[0].to(at::kDouble).nan_to_num(1, 7, -7).clamp(-99, 99).to(at::kLong); }},
    {"copy_to", 1, true,
     [](A a) {
       need(a.p % 3 != 2 || a[0].dim() == 4, "four dimensions");
       const auto format = a.p % 3 == 0   ? at::MemoryFormat::Contiguous
                           : a.p % 3 == 1 ? at::MemoryFormat::Preserve
                                          : at::MemoryFormat::ChannelsLast;
       return a[0].to(a[0].scalar_type(), false, /*copy=*/true, format);
     }},
    {"copy_into_new", 1, true,
     [](A a) {
       const auto type = a.p % 2 == 0 ? a[0].scalar_type() : at::kDouble;
       const int64_t d = a[0].dim() > 0 ? dim(a) : 0;
       const Tensor turned = a[0].dim() > 0 ? a[0].transpose(0, d) : a[0];
       Tensor made = at::empty_like(a.q % 2 == 0 ? a[0] : turned, type);
       return made.copy_(a.q % 2 == 0 ? a[0] : turned);
     }},
    {"clone", 1, true, [](A a) { return a[0].clone(); }},
    {"contiguous", 1, true, [](A a) { return a[0].contiguous(); }},
    {"channels_last", 1, true, [](A a) { return a[0].contiguous(at::MemoryFormat::ChannelsLast); }},
    // Views.
    {"narrow", 1, true,
     [](A a) {
       const int64_t d = dim(a), begin = a.q % (a[0].size(d) + 1);
       return a[0].narrow(d, begin, (a.p / 7) % (a[0].size(d) - begin + 1));
     }},
    {"every_second", 1, true, [](A a) { return a[0].slice(dim(a), a.q % 2, std::nullopt, 2); }},
    {"select", 1, true,
     [](A a) {
       need(a[0].dim() > 0 && a[0].size(dim(a)) > 0, "something to select");
       return a[0].select(dim(a), a.q % a[0].size(dim(a)));
     }},
    {"transpose", 1, true,
     [](A a) {
       const int64_t d = dim(a);
       return a[0].transpose(d, a.q % a[0].dim());
     }},
    {"rotate_dims", 1, true, [](A a) { return a[0].movedim(0, dim(a)); }},
    {"flat", 1, true, [](A a) { return a[0].view({-1}); }},
    {"reshape_flat", 1, true, [](A a) { return a[0].reshape({-1}); }},
    {"fold", 1, true,
     [](A a) {
       need(a[0].numel() % (a.p % 3 + 2) == 0, "a multiple");
       return a[0].view({a.p % 3 + 2, a[0].numel() / (a.p % 3 + 2)});
     }},
    {"unsqueeze", 1, true, [](A a) { return a[0].unsqueeze(a.p % (a[0].dim() + 1)); }},
    {"squeeze", 1, true, [](A a) { return a[0].squeeze(); }},
    {"expand", 1, true,
     [](A a) {
       auto sizes = a[0].sizes().vec();
       for (int64_t& size : sizes) size = size == 1 ? a.q % 4 : size;
       if (a.p % 2 == 0) sizes.insert(sizes.begin(), a.p % 4 + 1);
       return a[0].expand(sizes);
     }},
    {"unbind", 1, true, [](A a) { return piece(a[0].unbind(dim(a)), a.q); }},
    {"split", 1, true, [](A a) { return piece(a[0].split(1 + a.p % 3, dim(a)), a.q); }},
    {"chunk", 1, true, [](A a) { return piece(a[0].chunk(2 + a.p % 2, dim(a)), a.q); }},
    {"diagonal", 1, true, [](A a) { return a[0].diagonal(); }},
    {"unfold", 1, true,
     [](A a) {
       need(a[0].dim() > 0 && a[0].size(dim(a)) >= 2, "two");
       return a[0].unfold(dim(a), 2, 1);
     }},
    {"detach", 1, true, [](A a) { return a[0].detach(); }},
    {"as_bits", 1, false,
     [](A a) {
       need(a[0].scalar_type() == at::kFloat, "fp32");
       return a[0].detach().view(a.p % 2 == 0 ? at::kInt : at::kShort);
     }},
    // Changes in place.
    {"add_", 2, true, [](A a) { return changed(a, [&](Tensor& x) { x.add_(a[1]); }); }},
    {"sub_", 2, true, [](A a) { return changed(a, [&](Tensor& x) { x.sub_(a[1], 0.5); }); }},
    {"mul_", 2, true, [](A a) { return changed(a, [&](Tensor& x) { x.mul_(a[1]); }); }},
    {"mul_number_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.mul_(small(a.p)); }); }},
    {"add_number_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.add_(small(a.p)); }); }},
    {"relu_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.relu_(); }); }},
    {"neg_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.neg_(); }); }},
    {"tanh_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.tanh_(); }); }},
    {"clamp_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.clamp_(-1, 1); }); }},
    {"zero_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.zero_(); }); }},
    {"fill_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.fill_(small(a.p)); }); }},
    {"copy_", 2, true,
     [](A a) {
       need(a[0].is_floating_point() || !a[1].is_floating_point(), "a defined conversion");
       return changed(a, [&](Tensor& x) { x.copy_(a[1]); });
     }},
    {"lerp_", 2, true, [](A a) { return changed(a, [&](Tensor& x) { x.lerp_(a[1], 0.25); }); }},
    {"addcmul_", 3, true,
     [](A a) { return changed(a, [&](Tensor& x) { x.addcmul_(a[1], a[2], 0.5); }); }},
    {"masked_fill_", 2, false,
     [](A a) { return changed(a, [&](Tensor& x) { x.masked_fill_(a[1].gt(0), small(a.p)); }); }},
    {"greater_", 1, false, [](A a) { return changed(a, [&](Tensor& x) { x.gt_(small(a.p)); }); }},
    {"index_add_", 3, true,
     [](A a) {
       const int64_t d = dim(a);
       need_apart(a[0], a[2]);
       const Tensor rows = row_numbers(a[1], a[0].size(d));
       return changed(a, [&](Tensor& x) { x.index_add_(d, rows, a[2]); });
     }},
    {"index_put_", 3, false,
     [](A a) {
       need_apart(a[0], a[2]);
       const Tensor rows = row_numbers(a[1], a[0].size(0));
       return changed(a, [&](Tensor& x) { x.index_put_({rows}, a[2], /*accumulate=*/true); });
     }},
    {"cumsum_", 1, true, [](A a) { return changed(a, [&](Tensor& x) { x.cumsum_(dim(a)); }); }},
    {"add_out", 3, true,
     [](A a) {
       need(a[1].add(a[2]).sizes() == a[0].sizes() && !a[0].requires_grad(), "the result's size");
       return changed(a, [&](Tensor& x) { at::add_out(x, a[1].detach(), a[2].detach()); });
     }},
    {"foreach_mul_", 2, true,
     [](A a) {
       const at::NoGradGuard no_grad;
       at::_foreach_mul_({a[0], a[1]}, 0.5);
       return a[a.p % 2];
     }},
    {"foreach_add_", 2, true,
     [](A a) {
       const at::NoGradGuard no_grad;
       at::_foreach_add_({a[0]}, {a[1]}, -1);
       return a[0];
     }},
    // Reductions.
    {"sum", 1, true, [](A a) { return a[0].sum(); }},
    {"sum_dim", 1, true, [](A a) { return a[0].sum(dim(a), a.q % 2 == 0); }},
    {"mean_dim", 1, true, [](A a) { return fraction(a[0]).mean(dim(a), a.q % 2 == 0); }},
    {"sum_dims", 1, true,
     [](A a) {
       std::vector<int64_t> dims = {0};
       if (dim(a) != 0) dims.push_back(dim(a));
       return a[0].sum(dims, a.q % 2 == 0);
     }},
    {"mean", 1, true, [](A a) { return fraction(a[0]).mean(); }},
    {"amin", 1, true, [](A a) { return a[0].amin(dim(a), a.q % 2 == 0); }},
    {"amax", 1, true, [](A a) { return a[0].amax(dim(a), a.q % 2 == 0); }},
    {"argmax", 1, false, [](A a) { return number(a[0]).argmax(dim(a)); }},
    {"max", 1, false,
     [](A a) {
       const auto [values, places] = a[0].max(dim(a), a.q % 2 == 0);
       return a.q % 3 == 0 ? places : values;
     }},
    {"sort", 1, false,
     [](A a) {
       const auto [values, places] = a[0].sort(std::optional<bool>(true), dim(a));
       return a.q % 3 == 0 ? places : values;
     }},
    {"var", 1, true, [](A a) {
       need(a[0].dim() > 0 && a[0].size(dim(a)) > 1, "several");
       return fraction(a[0]).var(at::OptionalIntArrayRef(dim(a)), true);
     }},
    {"norm", 1, true, [](A a) { return fraction(a[0]).norm(); }},
    {"softmax", 1, true, [](A a) { return fraction(a[0]).softmax(dim(a)); }},
    {"log_softmax", 1, true, [](A a) { return fraction(a[0]).log_softmax(dim(a)); }},
    {"logsumexp", 1, true, [](A a) { return fraction(a[0]).logsumexp(dim(a)); }},
    {"cumsum", 1, true, [](A a) { return a[0].cumsum(dim(a)); }},
    {"any", 1, false, [](A a) { return a[0].any(dim(a)); }},
    // Networks.
    {"matmul", 2, true, [](A a) { return a[0].matmul(a[1]); }},
    {"matmul_t", 2, true, [](A a) { return a[0].matmul(a[1].transpose(-1, -2)); }},
    {"gram", 1, true, [](A a) { return rows_of(fraction(a[0])).mm(rows_of(a[0]).t()); }},
    {"linear", 2, true, [](A a) { return at::linear(a[0], rows_of(a[1])); }},
    {"addmm", 3, true, [](A a) { return a[0].addmm(a[1], a[2], 0.5, 2); }},
    {"outer", 2, true, [](A a) { return at::outer(a[0], a[1]); }},
    {"layer_norm", 1, true,
     [](A a) { return at::layer_norm(rows_of(fraction(a[0])), {a[0].size(-1)}); }},
    {"batch_norm", 3, true, batch_norm},
    {"attention", 2, true, attention},
    {"embedding", 2, false,
     [](A a) {
       need(a[0].dim() == 2, "a table");
       return at::embedding(a[0], row_numbers(a[1], a[0].size(0)));
     }},
    {"index", 2, false,
     [](A a) {
       need(a[0].dim() > 0, "rows");
       return a[0].index({row_numbers(a[1], a[0].size(0))});
     }},
    // Takes the places as they are: they may be state.
    {"index_plain", 2, false,
     [](A a) {
       need(a[1].scalar_type() == at::kLong, "places");
       return a[0].index({a[1]});
     }},
    {"index_both", 2, false,
     [](A a) {
       need(a[0].dim() == 2, "rows and columns");
       return a[0].index({row_numbers(a[1], a[0].size(0)), row_numbers(a[1], a[0].size(1))});
     }},
    {"gather", 2, false,
     [](A a) { return a[0].gather(dim(a), row_numbers(a[1], a[0].size(dim(a)))); }},
    // Concatenation.
    {"cat", 2, true, [](A a) { return at::cat({a[0], a[1], a[0]}, dim(a)); }},
    {"stack", 2, true, [](A a) { return at::stack({a[0], a[1]}, a.p % (a[0].dim() + 1)); }},
    {"flip", 1, true, [](A a) { return a[0].flip({dim(a)}); }},
    {"pad", 1, true, [](A a) { return at::constant_pad_nd(a[0], {1, a.p % 3 - 1}, small(a.q)); }},
    // Factories.
    {"zeros_like", 1, true, [](A a) { return at::zeros_like(a[0]); }},
    {"full_like", 1, true, [](A a) { return at::full_like(a[0], small(a.p)); }},
    {"filled_later", 1, true, [](A a) { return at::empty_like(a[0]).copy_(a[0]); }},
    {"halves", 1, true,
     [](A a) {
       const Tensor whole = at::empty_like(rows_of(a[0]));
       const int64_t half = whole.size(0) / 2;
       whole.narrow(0, 0, half).zero_();
       whole.narrow(0, half, whole.size(0) - half).fill_(small(a.p));
       return whole;
     }},
    {"range", 0, true, [](A a) { return at::arange(a.p % 5, at::kLong); }},
    {"ones", 0, true, [](A a) { return at::ones({a.p % 3 + 1, a.q % 4 + 1}); }},
    // Random operators.
    {"dropout", 1, false, [](A a) { return at::dropout(fraction(a[0]), 0.3, true); }},
    {"rand_like", 1, false, [](A a) { return at::rand_like(fraction(a[0])); }},
    {"randn_like", 1, false, [](A a) { return at::randn_like(fraction(a[0])); }},
    {"bernoulli_", 1, false,
     [](A a) { return changed(a, [&](Tensor& x) { x.bernoulli_(0.5); }); }},
    {"normal_", 1, false, [](A a) { return changed(a, [&](Tensor& x) { x.normal_(0, 2); }); }},
    {"uniform_", 1, false, [](A a) { return changed(a, [&](Tensor& x) { x.uniform_(-1, 1); }); }},
    {"randperm", 0, false, [](A a) { return at::randperm(a.p % 6); }},
};

}  // namespace

std::span<const Operation> all_operations() { return kOperations; }

std::span<const at::ScalarType> all_formats() { return kFormats; }

}  // namespace gallop::compile
