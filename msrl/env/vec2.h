// A place or a direction in the plane.
#ifndef MSRL_ENV_VEC2_H_
#define MSRL_ENV_VEC2_H_

#include <Eigen/Core>

namespace msrl {

using Vec2 = Eigen::Vector2d;

}  // namespace msrl

#endif  // MSRL_ENV_VEC2_H_
