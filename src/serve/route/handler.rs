//! The handler of a route, in one type for all of them: what axum builds around a handler is then compiled once, and not once a
//! route, which was a fifth of what this crate took to build.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post};

use crate::drive::future::BoxFuture;
use crate::serve::app::App;

/// A handler, whatever it reads of a request.
#[derive(Clone)]
pub(super) struct RouteHandler(Arc<dyn Fn(Request, Arc<App>) -> BoxFuture<'static, Response> + Send + Sync>);

/// What a `RouteHandler` reads of a request by axum's extractors: nothing, since its handler does.
pub(super) struct NoExtractors;

impl RouteHandler {
    fn new<T: 'static>(handler: impl Handler<T, Arc<App>>) -> Self {
        Self(Arc::new(move |request, app| Box::pin(handler.clone().call(request, app))))
    }
}

impl Handler<NoExtractors, Arc<App>> for RouteHandler {
    type Future = BoxFuture<'static, Response>;

    fn call(self, request: Request, app: Arc<App>) -> Self::Future {
        (self.0)(request, app)
    }
}

/// A route that is read.
pub(super) fn read<T: 'static>(handler: impl Handler<T, Arc<App>>) -> MethodRouter<Arc<App>> {
    get(RouteHandler::new(handler))
}

/// A route that takes a body.
pub(super) fn posted<T: 'static>(handler: impl Handler<T, Arc<App>>) -> MethodRouter<Arc<App>> {
    post(RouteHandler::new(handler))
}

/// A route that ends something.
pub(super) fn deleted<T: 'static>(handler: impl Handler<T, Arc<App>>) -> MethodRouter<Arc<App>> {
    delete(RouteHandler::new(handler))
}
