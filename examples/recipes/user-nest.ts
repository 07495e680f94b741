// examples/recipes/user-nest.ts
import 'reflect-metadata'
import {
  All,
  type CanActivate,
  Controller,
  type ExecutionContext,
  Injectable,
  Module,
  Next,
  Req,
  Res,
  UseGuards,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NextFunction, Request, Response } from 'express'
import { collection, createResourceService, memoryStore, mount } from 'http-resource-service'
import type { HostUser } from 'http-resource-service/auth'

interface RequestWithUser extends Request {
  user?: { readonly id: string; readonly role: string }
}

const keys = new Map([
  ['ada-key', { id: 'ada', role: 'editor' }],
  ['bob-key', { id: 'bob', role: 'reader' }],
])

@Injectable()
class ApiKeyGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<RequestWithUser>()
    request.user = keys.get(String(request.headers['x-api-key']))
    return true // the service answers 401 itself
  }
}

function findUser({ user }: RequestWithUser): HostUser | undefined {
  return user && { id: user.id, claims: { role: user.role } }
}

const service = createResourceService(memoryStore(), {
  resources: { '/notes': collection() },
  auth: {
    principal: ({ hostContext }) => findUser(hostContext as RequestWithUser),
    principalIsAmbient: false, // browsers do not send X-Api-Key by themselves
    challenge: 'ApiKey realm="app"',
    requireAuth: 'all',
    authorize: (principal, request) => request.method === 'GET' || principal?.claims?.['role'] === 'editor',
  },
})

@Controller('api')
@UseGuards(ApiKeyGuard)
class ApiController {
  readonly #service = mount('/api', service)

  @All(['', '*path'])
  serve(@Req() req: Request, @Res() res: Response, @Next() next: NextFunction): void {
    this.#service(req, res, next)
  }
}

@Module({ controllers: [ApiController] })
class AppModule {}

const app = await NestFactory.create(AppModule, { bodyParser: false })
await app.listen(8080)
