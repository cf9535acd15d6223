// Numbers as distributions over fixed points: what the reward and value heads of world models
// predict. A target puts its weight on the two points next to it ("two-hot"), so that the mean of
// the distribution is the number, whatever its scale. The operations over them are in
// static_graph.h.
//
//   const TwoHotBins bins = TwoHotBins::Symlog(101, 10.0);        // TD-MPC2
//   const Node loss = graph.TwoHotCrossEntropy(logits, x, bins);
//   const Node mean = graph.TwoHotMean(logits, bins);
#ifndef MSRL_NN_TWO_HOT_H_
#define MSRL_NN_TWO_HOT_H_

#include <span>
#include <vector>

namespace msrl {

// sign(x) log(1 + |x|) and its inverse.
float Symlog(float x);
float Symexp(float x);

// Points b_0 < ... < b_{n-1}, symmetric about zero.
class TwoHotBins {
 public:
  // Evenly spaced between -limit and limit. The mean is sum p_i b_i.
  static TwoHotBins Even(int count, double limit);
  // Even points for symlog(x) (TD-MPC2). The mean is symexp(sum p_i b_i).
  static TwoHotBins Symlog(int count, double limit);
  // The points are symexp of even ones, weights are linear in x itself (DreamerV3). The mean is
  // sum p_i b_i.
  static TwoHotBins Symexp(int count, double limit);

  int count() const { return static_cast<int>(points_.size()); }
  std::span<const float> points() const { return points_; }

  // Where x lies, cut to the range of the points: the weight of point below + 1 is `above`, that of
  // point below is 1 - above. No number has no place: its weights are none either.
  struct Place {
    int below = 0;
    float above = 0.0F;
  };
  Place Find(float x) const;

  // The number that stands for sum p_i b_i, and the derivative of that.
  float FromMean(float mean) const;
  float FromMeanSlope(float mean) const;

 private:
  enum class Space { kEven, kSymlog, kSymexp };
  TwoHotBins(Space space, int count, double limit);

  Space space_;
  float limit_;  // of the even points
  std::vector<float> points_;
};

}  // namespace msrl

#endif  // MSRL_NN_TWO_HOT_H_
