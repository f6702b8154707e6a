#pragma once

// What the update rules of rules/ are written in. NVRTC compiles it too, in C++17 and without any
// other header.
//
// A rule is the arithmetic of one optimizer, for any kind of numbers: vectors of the CPU, single
// numbers of a GPU, tensors. It is a struct with
//
//   kName       what gallop::update_ calls it, and its kernels
//   kStates     numbers beside each number of a parameter
//   kRunning    numbers beside each parameter, fp64, that change from step to step
//   kFactors    what is the same for all numbers of a parameter in a step
//   enum Option which are the numbers of `options`
//   begin(at, f, next)    makes the factors, and the next running numbers from the present ones
//   apply(g, p, s, f)     updates a number p and its states s by its gradient g
//
// A rule with a trust ratio (kMeasures) comes by all numbers twice:
//   measure(g, p, s, f)   gives what is measured beside p, by the root of the sum of squares, and
//                         makes the new states if kMeasures is kAndUpdates
//   ratio(at, p, m)       makes the ratio of both norms
//   apply(g, p, s, f, r)  updates p, and else the states
//
// Numbers have + - *, fma(a, b, c) = a * b + c, fnma(a, b, c) = c - a * b, root, quotient,
// max, magnitude, sign; those that belong to a parameter have + - * / and what follows below.

#if defined(__CUDACC_RTC__)
#define GALLOP_DEVICE __device__
#else
#define GALLOP_DEVICE
#endif

namespace gallop::kernel {

/// What the factors of a parameter's update are made of. Number is double, or a tensor without
/// dimensions where LibTorch's operators compute.
template <typename Number>
struct UpdateMoment {
  Number step;  ///< Of this update, from 1; always 1 where steps are not counted.
  Number lr;
  Number weight_decay{};
  Number decays{};  ///< 1 for a parameter with weight decay, also while that is scheduled to be 0.
  const Number* options = nullptr;  ///< In the order of the rule's Option; any may vary.
  const Number* running = nullptr;
};

/// Whether weight decay is part of the gradient.
enum class Decay { kCoupled, kDecoupled };

enum class Measures { kNothing, kOnly, kAndUpdates };

GALLOP_DEVICE inline double power(double a, double b) {
#if defined(__CUDACC_RTC__)
  return ::pow(a, b);
#else
  return __builtin_pow(a, b);
#endif
}
GALLOP_DEVICE inline double square_root(double a) {
#if defined(__CUDACC_RTC__)
  return ::sqrt(a);
#else
  return __builtin_sqrt(a);
#endif
}
GALLOP_DEVICE inline double larger(double a, double b) { return a > b ? a : b; }
GALLOP_DEVICE inline bool is_above(double a, double b) { return a > b; }
GALLOP_DEVICE inline double choose(bool condition, double yes, double no) {
  return condition ? yes : no;
}

/// The rules in the order of their numbers.
template <typename... Rules>
struct RuleList {
  static constexpr int kCount = sizeof...(Rules);
};
template <int kNumber, typename List>
struct RuleOf;
template <typename First, typename... Rest>
struct RuleOf<0, RuleList<First, Rest...>> {
  using Type = First;
};
template <int kNumber, typename First, typename... Rest>
struct RuleOf<kNumber, RuleList<First, Rest...>> {
  using Type = typename RuleOf<kNumber - 1, RuleList<Rest...>>::Type;
};

}  // namespace gallop::kernel
